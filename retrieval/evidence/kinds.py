"""The kinds of answers: what a question asks for, and which statements have it."""

import re
from collections.abc import Iterator, Set
from functools import lru_cache

from callslip.languages import DEFAULT, Codes, languages
from callslip.languages.contract import Amount
from callslip.retrieval.evidence.clauses import claims_of

NUMBER = 0.2
"""The score of a statement with a number, if the question asks for a number."""

EXACT = 0.1
"""The score of a statement that has a date, an address or an amount of the dimension, if the
question asks for it."""

UNIT = 40
"""The maximum number of characters of a unit of measure behind `how many`."""

_YEAR = re.compile(r"(?<!\d)(?:1\d|20)\d\d(?!\d)")
_ADDRESS = re.compile(
    r"\w@[\w-]+\.\w|https?://|\bwww\."
    r"|(?<![\w-])\+?(?:\d{1,4}(?:-\d{1,4}){1,2}-\d{4}|\d{3}-\d{4}|1[568]\d\d-\d{4})(?![\d-])"
)
"""An e-mail address, a URL or a telephone number."""


@lru_cache(maxsize=256)
def kinds_of(question: str, codes: Codes = DEFAULT) -> frozenset[str]:
    """Return what a question asks for: `number`, `date`, `address`, dimensions of amounts."""
    kinds: set[str] = set()
    for one in languages(codes):
        for pattern, names in one.kinds.questions:
            kinds |= names if pattern.search(question) else set()
        for match in one.kinds.counted.finditer(question):
            # `how many days` asks for what `2 days` is.
            units = one.claims.amounts(f"2 {question[match.end() : match.end() + UNIT].lstrip()}")
            kinds |= {amount.dimension for amount in units if amount.start == 0}
    return frozenset(filter(None, kinds))


def fit(statement: str, kinds: Set[str], codes: Codes = DEFAULT) -> float:
    """Return the score of a statement for these kinds; a day in words counts as a number."""
    if not kinds:
        return 0.0
    exact = (
        _has_address(statement, kinds)
        or _has_date(statement, kinds, codes)
        or any(_amounts(statement, kinds, codes))
    )
    numbered = "number" in kinds and (exact or has_number(statement, codes))
    return NUMBER * numbered + EXACT * exact


def has_needed(question: str, statement: str, codes: Codes = DEFAULT) -> bool:
    """Whether a statement has what the question names: the digits of a telephone number."""
    pairs = (pair for one in languages(codes) for pair in one.kinds.needed)
    return all(needed.search(statement) for asks, needed in pairs if asks.search(question))


def has_number(statement: str, codes: Codes = DEFAULT) -> bool:
    """Whether a statement has a number, in digits or in words."""
    return any(one.kinds.number.search(statement) for one in languages(codes))


def _has_address(statement: str, kinds: Set[str]) -> bool:
    return "address" in kinds and _ADDRESS.search(statement) is not None


def _has_date(statement: str, kinds: Set[str], codes: Codes) -> bool:
    if "date" not in kinds:
        return False
    if any(one.kinds.date.search(statement) for one in languages(codes)):
        return True
    years = {match.start() for match in _YEAR.finditer(statement)}
    amounts = claims_of(statement, codes).amounts(statement) if years else ()
    return bool(years - {a.start for a in amounts if a.dimension in ("money", "percent")})


def _amounts(statement: str, kinds: Set[str], codes: Codes) -> Iterator[Amount]:
    amounts = claims_of(statement, codes).amounts(statement)
    return (amount for amount in amounts if amount.dimension in kinds)
