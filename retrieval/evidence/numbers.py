"""Numbers of questions and statements: what is asked for, and what a passage must contain."""

import re

_ASKS_NUMBER = re.compile(
    r"\bhow\s+(?:many|much|long|old|often|far|fast|soon|large|big|tall|high|deep|wide|late|early)\b"
    r"|\bwhen\b|\b(?:what|which)\s+(?:year|date|day|time|percentage|percent|number|age|amount|price"
    r"|cost|hours?|fee)\b"
    r"|얼마|몇|며칠|언제|기한|요금|수수료|금액|상한|하한|기간|비율",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six"
    r"|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred|thousand|million"
    r"|once|twice|half)\b"
    r"|(?:하루|이틀|사흘|나흘|닷새|무료)|(?:한|두|세|네|다섯|여섯)\s?(?:시간|번|달|해|명|점|주)"
    r"|[일이삼사오육칠팔구십백천만]{2,}\s?(?:일|개월|년|원|명|시간|분|주|퍼센트|세|회)",
    re.IGNORECASE,
)

_COUNTS = re.compile(r"\bhow\s+(?:many|much)\b|얼마(?!나)|(?<![가-힣])몇(?!\s?가지)", re.IGNORECASE)
_NUMERAL = re.compile(r"(?<![\d.,])\d+(?:[.,]\d+)*(?![\d])")
_DESIGNATED = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+ \d{1,2}(?![\d%]|[.,]\d|\s(?:[a-z]|%))")
"""A number that is part of a name, within a sentence: `Region 5`, not `Leave 20 days`."""

_NAMED = re.compile(
    r"(?:(?<=\S )[A-Z][A-Za-z]*"
    r"|\A[A-Z][A-Za-z]*(?=\s[\d.]+(?:\s(?:is|was|has|will|can)\b|[는은이가을를의에,]))"
    r"|(?i:\b(?:version|article|section|chapter|part|rule|step|level|class|type|form)))"
    r"[ ](?P<number>\d+(?:\.\d+)*)(?!\d|,\d|\s?%)|제(?P<article>\d+)(?=조|장|절|항|호)"
)
_YEAR = re.compile(r"(?:19|20)\d\d")


def asks_number(question: str) -> bool:
    """Whether a question probably asks for a number, a date or a duration."""
    return _ASKS_NUMBER.search(question) is not None


def asks_count(question: str) -> bool:
    """Whether only a number answers a question: `how many`, `얼마`."""
    return _COUNTS.search(question) is not None


def has_number(statement: str) -> bool:
    """Whether a statement has a number, in digits or in words."""
    return _NUMBER.search(statement) is not None


def has_count(statement: str) -> bool:
    """Whether a statement has a number that counts, not one that is part of a name: `Region 5`."""
    return has_number(_DESIGNATED.sub(" ", statement))


def named_numbers(question: str) -> frozenset[str]:
    """The numbers behind names in a question, without years: `Vue 4`, `Section 54`, `제5조`.

    A passage without them is about something else.
    """
    numbers = (match["number"] or match["article"] for match in _NAMED.finditer(question))
    return frozenset(number for number in numbers if not _YEAR.fullmatch(number))


def has_numbers(numbers: frozenset[str], text: str) -> bool:
    """Whether a text has all these numbers: `4` is in `4` and `4.0`, not in `3.4`."""
    there = _numerals(text)
    return all(any(each == n or each.startswith(f"{n}.") for each in there) for n in numbers)


def _numerals(text: str) -> list[str]:
    return [re.sub(r",(?=\d{3}(?!\d))", "", number) for number in _NUMERAL.findall(text)]
