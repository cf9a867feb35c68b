"""The kinds of answers that English questions ask for."""

import re

from callslip.languages.contract import Kinds, Ranges, words

_MEASURES = (
    r"years?|months?|days?|weekdays?|dates?|time|hours?|deadlines?|percentages?|percent|rates?"
    r"|numbers?|ages?|amounts?|prices?|costs?|fees?|fines?|limits?|ceilings?|heights?|lengths?"
    r"|sizes?|distance|temperatures?|speed"
)

_OF = r"what(?:['’]s|\s+(?:is|are))\s+(?:the|your|their|its|his|her)\s+(?:[\w'’-]+\s+){0,3}?"


def _asks(text: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{text})\b", re.I)


KINDS = Kinds(
    questions=(
        (
            _asks(
                r"how\s+(?:many|much|long|old|young|often|far|fast|soon|large|big|tall|high|deep"
                r"|wide|thick|heavy|late|early|hot|cold|warm)|when"
                rf"|(?:what|which)\s+(?:\w+\s+){{0,2}}?(?:{_MEASURES})"
            ),
            words("number"),
        ),
        (_asks(r"when|(?:what|which)\s+(?:\w+\s)?(?:year|date|day|month|century)"), words("date")),
        (_asks(r"how\s+long"), words("time months seconds")),
        (
            _asks(
                r"how\s+much(?!\s+(?:time|longer))"
                r"|(?:what|which)\b.{0,80}?\b(?:cost|price|fee|fine)s?"
            ),
            words("money percent"),
        ),
        (_asks(r"how\s+old|(?:what|which)\s+age"), words("age months")),
        (_asks(r"what\s+(?:percent|percentage|rate|share)"), words("percent")),
        (_asks(r"what\s+time|opening\s+hours"), words("clock")),
        (
            _asks(r"(?:tele)?phone\s+number|e-?mail|contact|address|website|URL"),
            words("address"),
        ),
    ),
    counted=_asks(r"how\s+(?:many|much)"),
    number=re.compile(
        r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif"
        r"|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred|thousand"
        r"|million|once|twice|half)\b",
        re.I,
    ),
    date=_asks(
        r"January|February|(?-i:March|May)|April|June|July|August|September|October|November|December"
        r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|centur(?:y|ies)"
        r"|daily|weekly|monthly|yearly|annually"
    ),
    joined_before=re.compile(r"\d\s?(?:or|and|to)\s?$"),
    joined_behind=re.compile(
        r"\s?(?:[-\u2013,/&]|\b(?:or|and|to|through)\b)\s?(?:\d|later|newer|above|up\b|higher"
        r"|over|below|older)"
    ),
    needed=(
        (_asks(rf"{_OF}(?:tele)?phone\s+(?:numbers?|extension)"), re.compile(r"\d{3}")),
        (_asks(rf"{_OF}e-?mail\s+address(?:es)?"), re.compile("@")),
    ),
)

RANGES = Ranges(
    between=("to", "until", "till", "through", "and", "but"),
    joins=("and", "and an?"),
    lower_before=(
        *("from", "over", "above", "exceeding", "after", "at least", "a minimum of", "between"),
        r"(?<!no )(?<!not )(?:more|longer|older|later|higher|greater) than",
        r"(?:not|no) (?:less|fewer|younger|shorter) than",
    ),
    lower_behind=(
        r"(?:or|and) (?:more|over|above|longer|older|later|higher|greater|up|upwards)",
        "upwards",
    ),
    upper_before=(
        *("up to", "under", "below", "within", "before", "until", "at most", "a maximum of"),
        r"(?<!no )(?<!not )(?:less|fewer|shorter|younger|lower) than",
        r"(?:not|no) (?:more|longer|older) than|not (?:exceeding|over)",
    ),
    upper_behind=(r"(?:or|and) (?:less|fewer|under|below|shorter|younger)",),
    without=re.compile(
        r"^(?:over|above|exceeding|under|below|before"
        r"|(?:more|longer|older|later|higher|greater|less|fewer|shorter|younger|lower) than)$",
        re.I,
    ),
)
