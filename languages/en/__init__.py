"""The rules of English."""

import re
import threading

import Stemmer

from callslip.languages.calendar import BEGIN, END, YEAR, month_pattern
from callslip.languages.contract import (
    Calendar,
    FollowUps,
    Headings,
    Language,
    Questions,
    RelativeTimes,
    Script,
    Sentences,
    Terms,
    TimeCues,
    Unit,
    ValidityCues,
    words,
)
from callslip.languages.en.claims import CLAIMS
from callslip.languages.en.kinds import KINDS, RANGES
from callslip.languages.scripts import LATIN


class _Stemmer(threading.local):
    """A stemmer for each thread, because threads must not share PyStemmer's stemmers."""

    def __init__(self) -> None:
        self.porter = Stemmer.Stemmer("porter")


_stemmer = _Stemmer()


def _stem(word: str) -> str:
    stem: str = _stemmer.porter.stemWord(word)
    return stem


_MONTHS = (
    *("Jan(?:uary)?", "Feb(?:ruary)?", "Mar(?:ch)?", "Apr(?:il)?", "May", "June?", "July?"),
    *("Aug(?:ust)?", "Sept?(?:ember)?", "Oct(?:ober)?", "Nov(?:ember)?", "Dec(?:ember)?"),
)
_MONTH = month_pattern(_MONTHS)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4}

_CALENDAR = Calendar(
    months=_MONTHS,
    days=(
        rf"{_DAY}\s(?:day\sof\s|of\s)?{_MONTH},?\s(?P<year>\d{{4}})",
        rf"{_MONTH}\s{_DAY},?\s(?P<year>\d{{4}})",
    ),
    periods=tuple(
        re.compile(form, re.I)
        for form in (
            rf"{BEGIN}{_MONTH},?\s(?:of\s)?{YEAR}{END}",
            rf"{BEGIN}q(?P<quarter>[1-4])\s{YEAR}{END}",
            rf"{BEGIN}h(?P<half>[12])\s{YEAR}{END}",
            rf"{BEGIN}(?:the\s)?(?P<half>first|second)\shalf\sof\s{YEAR}{END}",
            rf"{BEGIN}(?:the\s)?(?P<quarter>{'|'.join(_ORDINALS)})\squarter\sof\s{YEAR}{END}",
            rf"{BEGIN}(?P<edge>early|late|(?:the\s)?(?:end|beginning|start)\sof)\s{YEAR}{END}",
        )
    ),
    ordinals=_ORDINALS,
    halves={"first": 1, "second": 2},
    beginnings=("early", "beginning", "start", "the beginning", "the start"),
)

_NUMBERS = {"a": 1, "an": 1} | {
    word: n
    for n, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 1
    )
}
_UNITS: tuple[Unit, ...] = ("year", "quarter", "month", "week")
_SHIFTS = (("last|previous", -1), ("this|current", 0), ("next", 1))

_RELATIVE = RelativeTimes(
    counted=re.compile(
        rf"(?<![\w-])(?P<count>\d{{1,2}}|{'|'.join(_NUMBERS)})\s(?P<unit>year|month|week|day)s?"
        r"\s(?:ago|back|earlier)\b",
        re.I,
    ),
    numbers=_NUMBERS,
    units={"year": "year", "month": "month", "week": "week", "day": "day"},
    named=(
        *(
            (rf"(?:{words})\s{unit}(?!\s(?:of|in)\b)", unit, shift)
            for words, shift in _SHIFTS
            for unit in _UNITS
        ),
        (
            r"(?:currently|nowadays|at\s(?:present|the\smoment)|right\snow|these\sdays|today|to\sdate"
            r"|(?<=as\sof\s)now|now(?=[?.!]?\s*$)|current(?=\s(?:law|rule|version|regulation|polic"
            r"|text|standard|provision|rate|guideline|edition|requirement)))",
            "day",
            0,
        ),
        ("yesterday", "day", -1),
        ("tomorrow", "day", 1),
    ),
    before=r"\b",
    after=r"\b",
)

_STORY = (
    r"(?:born|hired|joined|built|founded|registered|enrolled|employed|bought|purchased|acquired"
    r"|sold|graduated|married|moved|retired|worked|lived)"
)
_SAME_CLAUSE = r"(?:(?!(?:and|or|but|if|what|which|how)\b)[\w'’-]+\s)"
_TIME_CUES = TimeCues(
    ahead=re.compile(
        r"\b(?:(?P<firm>as\s(?:of|at)|as\sit\s(?:stood|was)\s(?:in|on|at)|(?:in\s(?:force|effect)"
        r"|effective|valid|applicable|applied)(?:\s(?:in|on|at|as\sof|during))?|at\sthe\stime\sof)"
        r"|(?P<before>before|prior\sto|earlier\sthan)"
        r"|(?P<since>since|after|following|(?:starting|beginning)(?:\s(?:in|from|on))?)"
        r"|(?P<at>(?:back\s)?in|during|throughout|within|by|no\slater\sthan|until|till|up\sto"
        r"|through|around|on|from|for))\s(?:the\s)?(?P<year>(?:calendar\s)?year\s)?(?:mid[\s-])?$",
        re.I,
    ),
    behind=re.compile(r"(?P<since>\s(?:onwards?|on(?=\W?$)|(?:and|or)\slater))(?![\w])"),
    articles=("the ",),
    of_subject_ahead=re.compile(
        r"\b(?:born|hired|join(?:ed|ing)|built|founded|established|registered|enrolled|employed"
        r"|bought|purchased|made|manufactured|signed|graduated|died|elected|created|formed|launched"
        r"|started|began|opened|happened|occurred|invented|discovered|won|married|moved|retired)\s$"
        # Before a noun alone the verb may be an adjective: `for married couples in 2020`.
        rf"|\b{_STORY}\s(?:an?|the|my|our|this|it|here|there|at|from|to|with|as|by|into|two|three)\s"
        rf"{_SAME_CLAUSE}{{0,2}}$"
        rf"|\b(?:I|we)(?:'ve|\shave|\shad|\swas|\swere)?\s(?:{_STORY}|adopted|got|had|signed)\s"
        rf"{_SAME_CLAUSE}{{0,3}}$",
        re.I,
    ),
    names=re.compile(
        r"\b(?:act|law|regulation|directive|decision|rule|agreement|treaty|convention|order"
        r"|resolution)\sof\s$|\bversion\s$",
        re.I,
    ),
    counted=re.compile(
        r"\s(?:words?|people|persons|patients|employees|countries|cases|units|dollars|won|euros"
        r"|times|years?|months?|days|hours|minutes|seconds|steps|lines|pages|characters|bytes|miles"
        r"|met(?:er|re)s|feet|km|kg|ms|BCE?|novel)\b",
        re.I,
    ),
    between=("to", "until", "till", "through"),
)

_RULES = re.compile(
    r"\b(?:laws?|rules?|polic(?:y|ies)|regulations?|acts?|articles?|statutes?|standards?|handbook"
    r"|requirements?|require[ds]?|allow(?:ed|s|ance)?|permitted|entitle[ds]?|entitlement|eligib\w+"
    r"|must|limits?|caps?|rates?|fees?|tax(?:es)?|penalt(?:y|ies)|fines?|deductible|minimum|maximum"
    r"|leave|benefits?|RFC|protocol)\b",
    re.I,
)
_QUESTIONS = Questions(
    rules=_RULES,
    intents={
        "definition": re.compile(
            r"\b(?:what\s(?:is|are|does)\s(?:an?\s|the\s)?[\w\s-]{2,40}(?:mean)?\?*$"
            r"|defin(?:e|ed|ition)|meaning\sof|stands?\sfor)",
            re.I,
        ),
        "how-to": re.compile(
            r"\bhow\s(?:do|does|can|to|should|would|could)\b|\bsteps?\sto\b|\bway\sto\b", re.I
        ),
        "legal": _RULES,
        "lookup": re.compile(
            r"\b(?:how\s(?:much|many|long|old|far|often)|when"
            r"|what\s(?:year|date|percentage|number))\b",
            re.I,
        ),
        "entity": re.compile(
            r"\b(?:who(?:se|m)?|where|which\s(?:company|person|country|city))\b", re.I
        ),
    },
)

_AUXILIARY = (
    r"(?:is|are|was|were|do|does|did|can|could|will|would|shall|should|(?-i:may)|must|has|have|had)"
)
_NOT_ASKING = (
    r"(?!(?:who|whose|whom|that|which|where|when)\b"
    rf"|(?:an?|the|I|you|we|they|it|s?he)\s{_AUXILIARY}\b)"
)
"""Before a word behind a preposition that no question begins with: `for staff who travel`,
`during the time I am away`."""
_ASKS_BEHIND = (
    rf"(?:\w[^,?]*,\s*(?:who|what|which|when|where|why|how|{_AUXILIARY})\b"
    r"|(?:for|in|at|with|without|on|by|during|from|under|to|of)\s"
    rf"(?:{_NOT_ASKING}[\w'’-]+\s){{1,3}}?(?:how|what|why|{_AUXILIARY})\s"
    rf"|(?:in|at|on|during)\s(?:{_NOT_ASKING}[\w'’-]+\s){{1,2}}?who\s(?:\w+s|{_AUXILIARY})\s)"
)
"""A preposition and its object before a question: `At lunch who answers phones?`, `In Seoul is
parking free?`."""

_FOLLOW_UPS = FollowUps(
    leads=(
        *("and", "but", "or", "so", "also", "then", "ok(?:ay)?", "well", r"what\s+about"),
        *(r"how\s+about", r"what\s+of", r"what\s+if"),
    ),
    fragment=re.compile(
        rf"(?!\w+\s+(?:what|which|who|whom|whose|when|how)\b|{_ASKS_BEHIND})"
        r"(?P<by>for|in|at|with|without|on|by|after|before|as\s+of|during|from|until|under|to|of"
        r"|if)\b",
        re.I,
    ),
    points=re.compile(
        r"\b(?:(?-i:it|It)|its|they|them|their|theirs|he|she|his|her|him)\b"
        r"|^(?:(?:is|are|was|were|do|does|did|can|will|has|have)\s+)?(?:this|that|these|those)\b"
        r"|\b(?:this|that|these|those|there|then|the\s+same)\s*[?.!]*$"
        r"|\b(?:this|that|these|those)\s+"
        r"(?:apply|mean|include|cost|last|work|start|end|cover|hold)\b",
        re.I,
    ),
    points_within=(
        r"\bit\s+(?:possible|allowed|permitted|required|necessary|mandatory|legal|true|ok(?:ay)?)\b"
        r"|\bit\s+(?:take|cost)\b(?=.{0,80}\bto\b)"
        r"|\b(?:an?|any|every|each)\s+\w+\b(?!\s+(?:of|for|to|in|on)\b)"
        r".{0,80}?\b(?:his|her|its|their|they|(?:when|if|before|after|once|while)\s+it)\b"
        r"|\b(?:do|are|can|must|may|should|will|if|how\s+many)\s+(?!they\b|its\b|his\b)"
        r"(?:\w+\s+){0,2}\w{2,}s\b.{0,80}?\b(?:they|their|them)\b"
    ),
    asking=(
        r"\b(?:how|what|which|who(?:m|se)?|when|where|why|is|are|was|were|am|be|been|do|does|did"
        r"|can|could|will|would|shall|should|may|might|must|has|have|had|the|an?|i|we|you|my|our"
        r"|your|me|us|there|long|much|many|often|please|tell|about|get|it|its|they|them|this|that"
        r"|these|those)\b",
        r"'s\b",
    ),
    complete=re.compile(
        rf"\A(?:(?:how|what|which|who|when|where|why|{_AUXILIARY}|may)\b|{_ASKS_BEHIND})",
        re.I,
    ),
)

_SENTENCES = Sentences(
    abbreviation=re.compile(
        r"\b(?:[A-Za-z]|[Mm](?:rs?|s)|[Dd]r|[Pp]rof|[Ss]t|Nos?|nos|[Aa]rts?|[Ss]ecs?|[Ff]igs?|[Vv]ol"
        r"|vs|cf|e\.g|i\.e|al|approx|[Ii]nc|[Ll]td|[Cc]o|[Cc]orp|U\.S|U\.K|a\.m|p\.m"
        r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.$"
    ),
    continues=re.compile(r"(?<=\bno)\.\s?\d"),
    letters="a-z",
    small="a-z",
    uncut=(
        *(r"\b[MD]r", r"\bMrs", r"\bvs", r"\b[Nn]o", r"\b[Ff]ig", r"\b[Ss]ec", r"\b[Aa]rt"),
        *(r"\bal", r"\bcf"),
    ),
)

_HEADINGS = Headings(
    named=re.compile(
        r"(?P<name>book|title|part|division|chapter|subchapter|subpart|rule|article|section|annex"
        r"|appendix|schedule)[ \t]+(?:\d{1,3}|[IVXLC]{1,7}|[A-Z])(?=[.:–—-]?(?:[ \t]|$))",
        re.I,
    ),
    trailing=("annex", "appendix", "schedule"),
    small_words=words("a an and as at by for from in into of on or the to vs with"),
)

_ON = (
    r"(?:\s(?:date|day))?\s?"
    r"(?:\sis|\sas\sof|\sfrom|\son|\ssince|\swith\seffect\sfrom|\sbeginning|\sstarting)*"
    r"\s*[:：|]*\s*(?:the\s)?"
)
_VALIDITY = ValidityCues(
    before={
        "end": (
            rf"(?:repealed|revoked|rescinded|withdrawn|superseded|cease[sd]?\sto\sapply){_ON}",
            rf"ceased?s?\sto\s(?:have\seffect|be\sin\sforce){_ON}",
        ),
        "through": (
            r"(?:in\s(?:force|effect)|valid|effective|applicable|appl(?:y|ies)|runs)\s(?:only\s)?"
            r"(?:until|till|through|up\sto)(?:\sand\sincluding)?\s*[:：|]?\s*(?:the\s)?",
            r"expir(?:es|y|ation)(?:\sdate)?(?:\son)?\s*[:：|]?\s*",
        ),
        "from": (
            r"(?:\beffective|\bin\s(?:force|effect)|\bapplicable|\bvalid|\bappl(?:y|ies)"
            r"|with\seffect|t(?:akes?|ook)\seffect|(?:comes?|came|enters?|entered)\sin(?:to)?\s"
            rf"(?:force|effect|operation)){_ON}",
        ),
        "revised": (r"(?:revised|amended|updated)(?:\son)?\s*[:：|]?\s*",),
    },
    range_words=("to", "until", "till", "through"),
    range_tail=r"(?:and\sincluding\s)?(?:the\s)?",
    keys={
        "from": ("valid_from", "effective", "effective_date", "effective_from"),
        "revised": ("revised", "last_revised"),
        "end": ("valid_to", "repealed"),
        "through": ("valid_until", "in_force_until", "expires", "expiry_date"),
    },
)

LANGUAGE = Language(
    code="en",
    script=Script(LATIN, share=0.5, shared=True),
    function_words=words(
        "a about am an and any are as at be been by can could did do does doing for from had has"
        " have how i if in into is it its many may me might much must my no not of on or our shall"
        " should so some than that the their them then there these they this those to us was we"
        " were what when where which who whom whose why will with would you your"
    ),
    terms=Terms(stem=_stem, plain=True, ignored=(r"(?<=\w)['’]s\b",)),
    calendar=_CALENDAR,
    relative_times=_RELATIVE,
    time_cues=_TIME_CUES,
    questions=_QUESTIONS,
    follow_ups=_FOLLOW_UPS,
    sentences=_SENTENCES,
    headings=_HEADINGS,
    validity=_VALIDITY,
    claims=CLAIMS,
    kinds=KINDS,
    ranges=RANGES,
)
