"""The rules for comparing English sentences of an answer with passages."""

import re
from collections.abc import Iterator

from callslip.languages.contract import Amount, Claims, clock, words
from callslip.languages.en.contrasts import MEASURES, OPPOSITES

_SMALL = {
    word: number
    for number, word in enumerate(
        (
            *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
            *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
            *("eighteen", "nineteen"),
        ),
        1,
    )
}
_TENS = {
    word: number
    for number, word in zip(
        range(20, 100, 10),
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"),
        strict=True,
    )
}
_ORDINALS = {
    word: number
    for number, word in enumerate(
        (
            *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"),
            *("ninth", "tenth", "eleventh", "twelfth"),
        ),
        1,
    )
}
_ONCE = {"once": 1, "twice": 2, "thrice": 3}
_OTHERS = {"half": 0.5, "quarter": 0.25, "dozen": 12, "midnight": 12, "noon": 12}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_UNITS: tuple[tuple[str, str, float], ...] = (
    (r"minutes?|mins?\b", "time", 1),
    (r"hours?|hrs?\b", "time", 60),
    (r"days?", "time", 1440),
    (r"weeks?", "time", 10080),
    (r"fortnights?", "time", 20160),
    (r"months?", "months", 1),
    (r"years?", "months", 12),
    (r"seconds?", "seconds", 1),
    (r"%|percent|per\scent", "percent", 1),
    (r"cents?|pence", "money", 0.01),
    (r"euros?|eur\b|dollars?|usd\b|pounds?|won\b|krw\b|[€$£₩]", "money", 1),
    (r"times", "times", 1),
    (
        r"a\.?\s?m\b|p\.?\s?m\b|o['’]clock|(?:in\sthe|at)\s(?:morning|afternoon|evening|night)",
        "clock",
        1,
    ),
)
_UNIT = re.compile(
    r"[\s-]?(?:(?:working|calendar|business|consecutive|full|more|extra|further|school)\s)?(?:"
    + "|".join(f"(?P<u{n}>{pattern})" for n, (pattern, _, _) in enumerate(_UNITS))
    + ")(?![a-z])",
    re.I,
)
_CARDINAL = "|".join((*_TENS, *sorted(_SMALL, key=len, reverse=True)))
_NUMBER = re.compile(
    r"(?<![\d:])(?P<hour>\d{1,2}):(?P<minute>\d\d)(?![\d:])"
    r"|(?P<currency>[€$£₩]\s?)?(?<![\w.])(?P<digits>\d+(?:[.,]\d+)*)(?P<th>st|nd|rd|th)?(?![a-z\d])"
    rf"|\b(?P<words>(?:{_CARDINAL})(?:-(?:{_CARDINAL}))?)\b"
    rf"|\b(?P<ordinal>{'|'.join(_ORDINALS)})\b"
    rf"|\b(?P<once>{'|'.join(_ONCE)})\b"
    rf"|\b(?P<other>{'|'.join(_OTHERS)})\b"
    r"|(?:(?<=\bwithin\s)|(?<=\bafter\s)|(?<=\bfor\s))an?"
    r"(?=\s(?:working\s)?(?:day|week|month|year|hour|minute)\b)",
    re.I,
)
_LIKE_ASCII = str.maketrans("ſİıK", "sIik")
"""Letters that match `s`, `i` and `k` without regard to case; each becomes one letter."""

_SCALE = re.compile(rf"\s(?P<scale>{'|'.join(_SCALES)})s?\b", re.I)
_OF_ONE = re.compile(r"\s(?:an?|of\san?)(?=\s)")


def amounts(text: str) -> Iterator[Amount]:
    """Iterate over the numbers of a text, in digits and in words, with what they count."""
    text = text.translate(_LIKE_ASCII)
    for match in _NUMBER.finditer(text):
        if match["hour"]:
            yield clock(match["hour"], match["minute"], *match.span())
            continue
        number, dimension = _number(match)
        end = match.end()
        if scale := _SCALE.match(text, end):
            number, end = number * _SCALES[scale["scale"].lower()], scale.end()
        of_one = _OF_ONE.match(text, end) if match["other"] else None
        unit = None if dimension else _UNIT.match(text, of_one.end() if of_one else end)
        if known := "money" if match["currency"] else dimension:
            yield Amount(number, known, number, match.start(), end)
        elif unit and unit.lastgroup:
            _, dimension, factor = _UNITS[int(unit.lastgroup[1:])]
            value = number % 12 if dimension == "clock" else number * factor
            yield Amount(number, dimension, value, match.start(), unit.end())
        else:
            yield Amount(number, "", number, match.start(), end)


def _number(match: re.Match[str]) -> tuple[float, str]:
    text = match[0].lower()
    if match["digits"]:
        digits = match["digits"].rstrip(".,")
        plain = re.sub(r",(?=\d{3}(?!\d))", "", digits).replace(",", ".")
        number = float(plain) if plain.count(".") < 2 else float(plain.replace(".", ""))
        return number, "ordinal" if match["th"] else ""
    if match["words"]:
        return float(sum((_SMALL | _TENS)[part] for part in text.split("-"))), ""
    if match["ordinal"]:
        return float(_ORDINALS[text]), "ordinal"
    if match["once"]:
        return float(_ONCE[text]), "times"
    if match["other"]:
        clock = text in ("midnight", "noon")
        return (0.0, "clock") if clock else (_OTHERS[text], "")
    return 1.0, ""


_WORD = re.compile(r"[^\W\d_]{2,}")
_LIKELY_VERB = re.compile(
    r"(?!(?:family|supply|reply|assembly|ally|bully|belly|anomaly|monopoly|wedding|building|ceiling|evening|morning)$)"
    r".*[aeiouy].*(?:ed|ing|ly|i[sz]e|able|ible)",
    re.I,
)
"""Adverbs, and forms that are rarely nouns."""

_VERBAL = re.compile(
    r"\b(?:to|can|cannot|could|may|might|must|shall|should|will|would|not|never|n['’]t|does|do|did|you|they"
    r"|we|who|that|which|be|is|are|was|were|been|being|also)\s\Z",
    re.I,
)
"""What stands before a verb or an adjective more often than before a noun."""


def things(text: str) -> Iterator[str]:
    """Iterate over the words of a text that may be nouns: without adverbs and likely verbs."""
    for match in _WORD.finditer(text):
        word = match[0]
        verbal = _LIKELY_VERB.fullmatch(word) or _VERBAL.search(
            text[max(0, match.start() - 12) : match.start()]
        )
        if not verbal or (word[0].isupper() and match.start()):
            yield word


_READER = (
    r"(?:the\s)?(?:(?:AI|language)\s)?(?:AI|assistants?|chat\s?bots?|(?<=language\s)models?|the\smodel"
    r"|whoever\sanswers)"
)
_SAYS = (
    r"(?:answer|reply|respond|say|tell|write|mention|state|add|include|end|print|output|recommend|claim"
    r"|repeat)"
)
_CLAIMS = r"(?:answer|reply|respond|say|tell|write|mention|state|recommend|claim|repeat)"

CLAIMS = Claims(
    amounts=amounts,
    clause=re.compile(
        r"[,;:](?=\s)|(?<=[.!?])\s|\s[–—-]\s|\s(?=(?:and|but|while|whereas|unless|if|when|because|although|or)\s)|\n",
        re.I,
    ),
    negation=re.compile(
        r"\b(?:not|cannot|never|no|none|nobody|nothing|neither|nor|without|unless|except|exempt\w*"
        r"|waive[ds]?|free(?!\w)|forbid(?:s|den)?|prohibit\w*|bann?(?:ed)?|refuse[ds]?|lacks?"
        r"|lacking|excluded?|ineligible|impossible|unable|shut|closed?|stops?|suspend\w*|block\w*)\b|n['’]t\b",
        re.I,
    ),
    bounds=re.compile(
        r"\b(?:no|not)\s(?:more|less|later|earlier|older|younger|longer|fewer|higher|lower)\sthan\b"
        r"|\b(?:that|which|who)\s(?:\w+\s){0,3}?(?:(?:does|do|did|is|are|has|have|was|were)\s?n[o'’]t\s)\w+"
        r"(?=\s(?:is|are|was|were|can|may|must|will|has|have)\b)"
        r"|\bno\.\s*(?=\d)",
        re.I,
    ),
    opposites=OPPOSITES,
    measures=MEASURES,
    synonyms=tuple(
        words(line)
        for line in """
            adult adults grown-up grown-ups
            child children kid kids minor minors
            person persons people anyone anybody everyone everybody whoever individual individuals
            parent parents mother father mothers fathers guardian
            sibling siblings brother brothers sister sisters
            employee employees staff worker workers colleague colleagues
            resident residents inhabitant inhabitants citizen citizens
            tradesperson tradespeople craftsman craftsmen
            doctor doctors physician physicians
            owner owners holder holders
            user users reader readers customer customers visitor visitors
            car cars vehicle vehicles automobile automobiles
            bicycle bicycles bike bikes
            telephone phone phones mobile smartphone
            e-mail email mail
            fee fees charge charges cost costs price prices rate rates
            rubbish waste garbage trash refuse
            bin bins container containers
            film films movie movies
            holiday holidays vacation vacations
            marriage wedding
            building buildings premises
            meal meals food eating eat
            most maximum capped limited limit
            day daily
            week weekly
            month monthly
            year yearly annual annually
            permitted allowed permit allow permits allows
            decision decisions ruling
            application applications request requests
            certificate certificates document documents
            money payment payments sum amount
            error errors mistake mistakes
            plot plots property properties land
            error mistake
            letter letters
            family families household households
            branch branches
            location locations site sites
            flat flats apartment apartments
            street streets road roads
            train trains railway
            gift gifts present presents
            salary salaries wage wages
            boss manager supervisor superior
            illness illnesses sickness disease diseases
            medicine medicines medication drug drugs
            picture pictures photo photos photograph photographs image images
            proof evidence
            copy copies duplicate duplicates
            period duration
            discount discounts reduction reductions rebate
            fine fines penalty penalties
            deadline deadlines
            purchase purchases
            delivery deliveries shipment shipments
            kerb curb roadside
            website websites site webpage online internet
            lawyer lawyers attorney attorneys
            spouse spouses wife husband
            baby babies infant infants newborn newborns
            pensioner pensioners retiree retirees
            police policeman
            advice counsel guidance consultation
            adviser advisers advisor advisors consultant consultants
            school schools
            pupil pupils schoolchildren
            university universities college
            seat seats
            town towns city cities municipality
            council government administration authority authorities
            deposit deposits security
            grant grants subsidy subsidies allowance allowances benefit benefits
            tool tools equipment
            device devices machine machines
            password passwords passphrase
            residence home homes dwelling
            journey journeys trip trips travel
            receipt receipts
            invoice invoices bill bills
            contract contracts agreement agreements
            surcharge supplement
            objection objections appeal appeals complaint complaints
            firm firms company companies business businesses
        """.strip().splitlines()
    ),
    general=words(
        """
        able about above accept accepts accompany according account achieve act active actual add
        addition additional additionally adds adequate adjust admit advance affect afford after
        afterward afterwards again ago agree agrees ahead aim all allocate allow allowable allowed
        almost along already also alternative although always amend amount and announce annual
        another answer any anybody anyone anything anytime apart apiece appear applicable applied
        applies apply appoint appropriate approve approves approximately aren around arrange
        arrive arrives ask asked asks assess assign assist attach attempt attend automatic
        available avoid award away back base based basic beat because become becomes before begin
        beginning begins being belong belongs below besides best better between beyond big bit
        blame block blocked book books borrow borrowed both break brief bring brings broad brought
        build burn busy but buy buys by calculate calculates call called can cannot cap capped
        careful careless carry case cases catch cause causes central certain change changes charge
        charged cheap cheaper check checks choose circumstance circumstances claim claims clean
        clear close closes collect collected collection combine come comes comfortable comment
        common compare complete completely compulsory concern concerned concerning conclude
        condition conditions conduct confirm confirms connect consider constant contact contain
        contains continue continues contribute convenient convert cook copy correct cost costly
        costs couldn count counts couple cover covered covering covers create creates cross
        current currently cut daily deal dear dearer decide decided declare deduct deep define
        delay delete deliver delivers demand deny depend depending depends describe deserve
        designate despite destroy determine determines develop didn differ different difficult
        direct directly disappear discuss dispose divide doesn don done double down draw drink
        drive drop due duration during each earlier earliest earn easy eat effective either elapse
        elect eligible else employ empty enable encourage end ends enjoy enough ensure enter
        enters entire entitled equal equals equip erase essential establish even every everybody
        everyone everything exact exactly example exceed exceeds except exchange exclude excluding
        exclusive exempt exist exists expect expensive expire expires explain expose express
        extend extends extra face fail fails fair fall false familiar far fast feel few fewer fill
        final find finds fine firm first fit fix fixed flat follow following follows for forbid
        force foreign form formal former forthwith forward found free frequent fresh friendly from
        front fulfil full fully function further future gain gather general gentle genuine get
        gets getting give given gives go goes good grant granted great grow grown grows guarantee
        half halves hand handed handle handles happen happens happy hard harder hardly has hasn
        have haven having hear heavy help helpful high higher hire hold holds host how however
        huge ideal identify if ill immediate important impose impossible improve in include
        included includes including inclusive independent indicate individual inform informs
        initial inside insist inspect install instance instant instead intend internal invite
        involve isn issue issued item items itself join joint judge jump just justify keep keeps
        kept key kind know known lack lacking lacks large larger largest last lasts late later
        latest lay lead leads learn least leave leaves legal lend lent less let lie lies light
        like likely limit limited link list little live living ll load loan local lock locks long
        longer look loose lose loses lot lots love lovely low lower made main maintain major make
        makes making manage manages mandatory manner many mark match matter maximum may mean means
        measure meet mention merge middle mind minimum minor minus miss missing mixed modify
        monitor monthly more moreover most mostly much multiple must mustn named narrow natural
        near nearby neat necessary need needed needn needs neither never new next nice no nobody
        none nor normal normally not nothing notified now obligatory observe obtain obvious occur
        odd of off offer offered offers old older oldest on once one only onwards open operate
        operates oppose opposite option optional options or order ordered ordinary organise
        organize original originate other others otherwise out outside over overall owe owes own
        owns paid pair pairs park part partial participate particular parts pass passed passes
        past pay payable paying pays per perfect perform period permanent permitted pick picked
        picks piece pieces place plain plan plans plant play please plenty plus point polite poor
        popular portion possess possibility possible possibly post postpone powerful practical
        practise precise prefer preferably prepare prepares present preserve press prevent
        previous price private proceed process produce prohibit promise promote prompt proper
        propose protect prove provide provided provides provisional public publish pull purchase
        purpose purposes push put puts qualifies qualify question quick quiet quit quite quote
        raise random rare rate rather raw re reach reaches react read reads ready real realise
        realize reason reasonable reasons recall receive received receives recent recipient
        recipients recognise recognize recommend record recover reduce reduced reduces refer
        refuse regard regarding register registers regular regularly regulate reject relate
        release relevant reliable rely remain remainder remaining remains remind remove removes
        renew rent repair repairs repay repeat replace replaces reply report reports represent
        request require required requires reschedule reserve resolve respect respective
        respectively respond responsible rest restrict result resume retain retrieve return
        returned reveal review reward rich right rise rises rough roughly round rude rule rules
        run runs rush sad safe sake same satisfied say says see sell sells send sends sensible
        separate serious serve serves set settle several severe shall share shared shares sharp
        shift ship short shorten should shouldn show shows shut sign significant signs silent
        similar simple simply simultaneous since single sit slight slow small smaller smooth so
        soft sole solid solve some somebody someone something soon sorry sort spare speak special
        specific spend split stable stand standard stands start started starts state stay stays
        steady step stick still stop stops store stores strange strict strong submit submits
        succeed successful such sudden suffer sufficient suggest suit suitable supplies supply
        support supports suppose sure surrender suspended switch take taken takes taking talk
        teach tell temporary term terms test than thank that the their them themselves then there
        these they thing things think this those though through throughout throw tie tight time
        times tiny tired together total totally touch tough toward towards trace track trade train
        transfer transport travel treat tries true trust try turn twice two twofold type typical
        ultimate unable uncommon under underneath understand undertake unique universal unless
        unlike unlikely unlimited unnecessary until up upcoming update upgrade upon upper urgent
        use used useful useless uses using usual usually vacant valid valuable various vast ve
        verify very via view violate visit visits wait waits walk want warn wash wasn waste watch
        way ways weak wealthy wear weird well wet what when whenever where whether which while who
        whole whose why wide will willing win wise wish with withdraw withdraws within without won
        wonderful work worked working worry worth would write writes wrong yet you young younger
        youngest your zero
        """
    ),
    specific=things,
    command=re.compile(
        r"\b(?:ignore|disregard|forget|override)\b.{0,40}"
        r"\b(?:instructions?|rules?|question|prompts?|above)\b"
        r"|\b(?:system\sprompt|(?:system|hidden)\sinstructions?|developer\smode)\b"
        rf"|(?:\A|[.:]\s)\W{{0,9}}{_READER}\s?[,:]"
        rf"|\b{_READER}\s(?:must|should)\b.{{0,60}}\b{_SAYS}\b"
        rf"|\b(?:note|message|instructions?|important|notice)\s(?:to|for)\s(?:\w+\s)?{_READER}"
        rf"|\bif\syou\sare\san?\s(?:\w+\s)?{_READER}|\bhey\s{_READER}"
        r"|\A\W{0,9}(?:system|override)\s?:"
        rf"|(?:\A\W{{0,9}}|[.!?,:;>]\W{{0,9}}|\bplease\s|\band\s|\bto\s|\bmust\s|\bnot\s){_SAYS}\s(?:.{{0,50}}"
        r"(?:\bonly\swith\b|\bafter\sme\b|\bthe\s(?:user|reader)\b|\bin\scapitals\b)"
        r"|(?:.{0,30}[\s{])?[\"“‘](?!\s))"
        rf"|(?:\A\W{{0,9}}|[.!?,:;>]\W{{0,9}}|\bplease\s|\band\s|\bmust\s){_CLAIMS}\s(?:\w+\s){{0,4}}that\b"
        r"|\byou\sare\snow\sin\b|\bnew\s(?:task|instructions?)\s(?:is|for)\b"
        r"|\bevery\sanswer\sbegins\b|\bin\s(?:its|your)\s(?:reply|answer|response)\b"
        r"|</?(?:instructions?|system|passage|assistant)>|<\|",
        re.I,
    ),
)
