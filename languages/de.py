"""The rules of German, which apply if the setting `languages` names it."""

import re
import threading
from collections.abc import Iterator

import Stemmer

from callslip.languages.calendar import BEGIN, END, YEAR, month_pattern
from callslip.languages.contract import (
    Calendar,
    Claims,
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
from callslip.languages.index_terms import MAX_TERM
from callslip.languages.scripts import LATIN


class _Stemmer(threading.local):
    """A stemmer for each thread, because threads must not share PyStemmer's stemmers."""

    def __init__(self) -> None:
        self.german = Stemmer.Stemmer("german")


_stemmer = _Stemmer()


def _stem(word: str) -> str:
    stem: str = _stemmer.german.stemWord(word)
    return stem


_NUMBER = re.compile(r"(?<![\d.,])(\d{1,3}(?:\.\d{3})+)(?:,(\d{1,9}))?(?![\d]|[.,]\d)")


def _numbers(text: str) -> Iterator[str]:
    """Iterate over numbers with dots between thousands, as English texts have them without commas.

    `1.000.000` and `1.000.000,50` both yield `1000000`.
    """
    for number in _NUMBER.finditer(text):
        yield number[1].replace(".", "")[:MAX_TERM]


_MONTHS = (
    *("Jan(?:uar)?|Jänner", "Feb(?:ruar)?", "März|Mrz", "Apr(?:il)?", "Mai", "Juni?", "Juli?"),
    *("Aug(?:ust)?", "Sept?(?:ember)?", "Okt(?:ober)?", "Nov(?:ember)?", "Dez(?:ember)?"),
)
_MONTH = month_pattern(_MONTHS)
_NTH = {"erste": 1, "zweite": 2, "dritte": 3, "vierte": 4}
_ORDINALS = {f"{word}{end}": n for word, n in _NTH.items() for end in ("n", "s", "")}

_CALENDAR = Calendar(
    months=_MONTHS,
    days=(
        rf"(?P<day>\d{{1,2}})\.\s?{_MONTH}\s(?P<year>\d{{4}})",
        r"(?P<day>\d{1,2})\.\s?(?P<month_no>\d{1,2})\.\s?(?P<year>\d{4})",
    ),
    periods=tuple(
        re.compile(form, re.I)
        for form in (
            rf"{BEGIN}{_MONTH}\s{YEAR}{END}",
            rf"{BEGIN}(?P<quarter>[1-4])\.\s(?:Quartal|Vierteljahr)\s{YEAR}{END}",
            rf"{BEGIN}(?P<quarter>{'|'.join(_ORDINALS)})\s(?:Quartal|Vierteljahr)\s{YEAR}{END}",
            rf"{BEGIN}(?P<half>[12])\.\s(?:Halbjahr|Jahreshälfte)\s{YEAR}{END}",
            rf"{BEGIN}(?P<edge>Anfang|Ende)\s{YEAR}{END}",
        )
    ),
    ordinals=_ORDINALS,
    beginnings=("anfang",),
)

_NUMBERS = {
    **dict.fromkeys(("einem", "einer"), 1),
    **{"zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8},
    **{"neun": 9, "zehn": 10},
}
_UNITS: dict[str, Unit] = {
    **dict.fromkeys(("jahr", "jahren"), "year"),
    **dict.fromkeys(("monat", "monaten"), "month"),
    **dict.fromkeys(("woche", "wochen"), "week"),
    **dict.fromkeys(("tag", "tagen"), "day"),
}
_SHIFTS = (("letzt|vorig|vergangen", -1), ("dies|laufend", 0), ("nächst|kommend", 1))
_NOUNS: tuple[tuple[str, Unit], ...] = (
    *(("Jahr(?:es)?", "year"), ("Quartals?", "quarter")),
    *(("Monats?", "month"), ("Woche", "week")),
)

_RELATIVE = RelativeTimes(
    counted=re.compile(
        rf"\bvor\s(?P<count>\d{{1,2}}|{'|'.join(_NUMBERS)})\s(?P<unit>{'|'.join(_UNITS)})\b", re.I
    ),
    numbers=_NUMBERS,
    units=_UNITS,
    named=(
        *(
            (rf"(?:{stems})e[nmrs]?\s{noun}", unit, shift)
            for stems, shift in _SHIFTS
            for noun, unit in _NOUNS
        ),
        ("(?:heute|derzeit|zurzeit|gegenwärtig|aktuell|jetzt)", "day", 0),
        ("vorgestern", "day", -2),
        ("gestern", "day", -1),
    ),
    before=r"\b",
    after=r"\b",
)

_TIME_CUES = TimeCues(
    ahead=re.compile(
        r"\b(?:(?P<firm>(?:zum\s|nach\s)?Stand(?:\s(?:vom|von|am))?|(?:gültig|in\sKraft|geltend)"
        r"(?:\s(?:am|im|in|seit|ab|zum))?|per)"
        r"|(?P<before>vor(?:\sdem)?)"
        r"|(?P<since>seit(?:\sdem)?|ab(?:\sdem)?|nach(?:\sdem)?)"
        r"|(?P<at>am|im|in(?:\s(?:dem|den|der))?|zum|bis(?:\szum)?|von|vom|während|um))"
        r"\s(?P<year>Jahre?s?\s)?$",
        re.I,
    ),
    articles=("in dem ", "in den ", "in der "),
    of_subject_behind=re.compile(
        r"\s(?:geboren|eingestellt|gegründet|gebaut|errichtet|unterzeichnet|verstorben|gewählt)\b",
        re.I,
    ),
    names=re.compile(r"\b(?:Gesetz|Verordnung|Richtlinie|Urteil|Abkommen|Vertrag)\svon\s$", re.I),
    counted=re.compile(
        r"\s(?:Personen|Menschen|Mitarbeiter\w*|Fälle|Länder|Euro|Mal|Jahren?|Monaten?|Tagen?"
        r"|Stunden|Minuten|Seiten|Zeilen|Meter|km|kg)\b",
        re.I,
    ),
    between=("bis", "bis zum"),
)

_RULES = re.compile(
    r"\b(?:Gesetz\w*|Verordnung\w*|Vorschrift\w*|Richtlinie\w*|Artikel|Paragra(?:ph|f)\w*|Regel\w*"
    r"|Satzung\w*|Anspruch|Frist\w*|Pflicht\w*|Gebühr\w*|Steuer\w*|Mindestlohn|Urlaub\w*|erlaubt"
    r"|zulässig|höchstens|mindestens|muss|müssen|darf|dürfen)\b|§",
    re.I,
)
_QUESTIONS = Questions(
    rules=_RULES,
    intents={
        "definition": re.compile(
            r"\bwas\s(?:ist|sind|bedeutet|heißt)\s(?:eine?\s|der\s|die\s|das\s)?[\w\s-]{2,40}\?*$"
            r"|\bDefinition\b|\bBedeutung\svon\b",
            re.I,
        ),
        "how-to": re.compile(r"\bwie\s(?:kann|muss|soll|beantrage|geht)\b|\bSchritte\b", re.I),
        "legal": _RULES,
        "lookup": re.compile(
            r"\b(?:wie\s(?:viele?|lange|alt|weit|oft|hoch)|wieviel|wann|welche[srn]?\s(?:Jahr|Datum))\b",
            re.I,
        ),
        "entity": re.compile(r"\b(?:wer|wem|wen|wo|welche[srn]?\s(?:Person|Stadt))\b", re.I),
    },
)

_FOLLOW_UPS = FollowUps(
    leads=(
        *("und", "aber", "oder", "also", "auch", "dann", "okay", r"was\s+ist\s+mit"),
        *(r"wie\s+(?:ist|steht)\s+es\s+(?:mit|um)", r"wie\s+sieht\s+es\s+(?:mit|bei)\s+"),
    ),
    fragment=re.compile(
        r"(?!\w+\s+(?:was|welche\w?|wer|wem|wen|wann|wie)\b)"
        r"(?P<by>für|bei|mit|ohne|nach|vor|seit|während|aus|bis|unter|von|zu|zum|zur|im|in|ab|ohne"
        r"|wenn|falls)\b",
        re.I,
    ),
    points=re.compile(
        r"\b(?:er|es|sie|ihn|ihm|ihr|ihre[nmrs]?|sein|seine[nmrs]?|deren|dessen|dafür|davon|damit"
        r"|dazu|daran|dabei|dort|diese[nmrs]?|jene[nmrs]?)\b",
        re.I,
    ),
    points_within=(
        r"\b(?:gibt|ist|kann|darf|muss)\s+es\b"
        r"|\bsie\s+(?:haben|sind|können|müssen|dürfen|sollen)\b"
    ),
    asking=(
        r"\b(?:wie|was|welche[nmrs]?|wer|wem|wen|wann|wo|warum|ist|sind|war|waren|sein|hat|haben"
        r"|hatte|kann|können|muss|müssen|darf|dürfen|soll|sollen|wird|werden|der|die|das|den|dem"
        r"|des|eine?[nmrs]?|ich|wir|sie|es|er|mein\w*|unser\w*|mir|mich|uns|lange|viele?|oft|hoch"
        r"|bitte|gibt|dauert|kostet|bekommt|beträgt|über)\b",
    ),
    complete=re.compile(
        r"\A(?:wie|was|welche[nmrs]?|wer|wem|wen|wann|wo|warum|ist|sind|hat|haben|kann|können|muss"
        r"|müssen|darf|dürfen|soll|wird|werden|gibt|gilt)\b",
        re.I,
    ),
)

_SENTENCES = Sentences(
    abbreviation=re.compile(
        r"\b(?:z\.\s?B|d\.\s?h|u\.\s?a|i\.\s?d\.\s?R|o\.\s?ä|bzw|ggf|evtl|inkl|ca|usw|vgl|Nr|Abs"
        r"|Art|Bd|Hr|Fr|Dr|Prof|Str|St|Tel|Mio|Mrd|Jh|Kap|Anm|gem|lt|z|B|d|h|u|a)\.$"
    ),
    continues=re.compile(rf"(?<=\d)\.\s?(?:{'|'.join(_MONTHS)}|Quartal|Halbjahr|Jahrhundert)\b"),
    numbered_line=r"§\s?\d",
    letters="a-zäöüß",
    small="a-zäöüß",
    uncut=(
        r"\bbzw",
        r"\bggf",
        r"\bNr",
        r"\bAbs",
        r"\bArt",
        r"\bz\.B",
        r"\bd\.h",
        r"\bvgl",
        r"\bca",
        r"\bgem",
    ),
)

_HEADINGS = Headings(
    levelled=re.compile(r"(?P<unit>§)\s?\d{1,4}[a-z]?(?=\s|$)"),
    levels={"§": 5},
    named=re.compile(
        r"(?P<name>Buch|Teil|Kapitel|Abschnitt|Unterabschnitt|Titel|Artikel|Anhang|Anlage)[ \t]+"
        r"(?:\d{1,3}|[IVXLC]{1,7}|[A-Z])(?=[.:–—-]?(?:[ \t]|$))",
    ),
    trailing=("anhang", "anlage"),
    small_words=words(
        "der die das den dem des ein eine einer eines und oder in im an am auf aus bei für mit nach"
        " über von vom zu zum zur"
    ),
)

_ON = r"(?:\s(?:am|ab|zum|vom|mit\sWirkung\svom))*\s*[:：|]*\s*(?:dem\s)?"
_VALIDITY = ValidityCues(
    before={
        "end": (rf"(?:aufgehoben|außer\sKraft\sseit){_ON}",),
        "through": (
            r"(?:gültig|gilt|in\sKraft|befristet)\s(?:nur\s)?bis(?:\s(?:zum|einschließlich))*\s*:?\s*",
        ),
        "from": (
            r"(?:gültig|gilt|in\sKraft(?:\sgetreten|\streten)?|wirksam|anzuwenden)"
            rf"(?:\sseit|\sab){_ON}",
            r"tritt\s(?:am|zum|mit\sWirkung\svom)\s*",
        ),
        "revised": (r"(?:geändert|Stand|Fassung|aktualisiert)(?:\s(?:am|vom))?\s*[:：|]?\s*",),
    },
    after={
        "end": (r"außer\sKraft", r"aufgehoben"),
        "from": (r"in\sKraft",),
        "revised": (r"geändert",),
    },
    range_words=("bis", "bis zum"),
    keys={
        "from": ("gültig_ab", "gültig_seit", "in_kraft_seit"),
        "revised": ("stand", "geändert_am"),
        "end": ("außer_kraft_seit",),
        "through": ("gültig_bis",),
    },
)

LANGUAGE = Language(
    code="de",
    script=Script(LATIN, share=0.5, shared=True),
    function_words=words(
        "aber als also am an auch auf aus bei beim bin bis da damit dann das dass dem den der des"
        " die dies diese dieser dieses doch durch ein eine einem einen einer eines er es für haben"
        " hat hatte ich ihr ihre ihrer im in ist ja kann kein keine man mein mit muss müssen nach"
        " nicht noch nur ob oder ohne sein seine seit sich sie sind so soll über um und uns unser"
        " unter vom von vor wann war waren was welche welcher welches wenn wer werden wie wieviel"
        " wird wir wo wurde zu zum zur zwischen"
    ),
    terms=Terms(stem=_stem, numbers=_numbers),
    calendar=_CALENDAR,
    relative_times=_RELATIVE,
    time_cues=_TIME_CUES,
    questions=_QUESTIONS,
    follow_ups=_FOLLOW_UPS,
    sentences=_SENTENCES,
    headings=_HEADINGS,
    validity=_VALIDITY,
    claims=Claims(
        negation=re.compile(
            r"\b(?:nicht|kein\w*|nie|niemals|niemand|nichts|ohne|weder)\b", re.IGNORECASE
        )
    ),
)
