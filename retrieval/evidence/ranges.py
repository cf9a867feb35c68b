"""Ranges of amounts in table rows: the row `3 to 5` is the one for a question about four years."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import inf
from typing import NamedTuple

from callslip.languages import DEFAULT, Codes, languages
from callslip.languages.contract import Amount, Language, Ranges, digits
from callslip.retrieval.evidence.clauses import claims_of
from callslip.retrieval.evidence.table_rows import cells, columns

LONGEST = 60
"""The maximum number of characters of a cell that is a range."""

_BETWEEN = ("-", "\u2013", "\u2014", "~", "\u301c", "\uff5e")
_LOWER_BEFORE, _LOWER_BEHIND = (">", ">=", "\u2265"), (r"\+", "~", "-", "\u2013")
_UPPER_BEFORE = ("<", "<=", "\u2264", "~")
_WITHOUT = frozenset("<>")


class _Range(NamedTuple):
    """Amounts of one dimension from `low` to `high`."""

    dimension: str
    low: float
    high: float
    without_low: bool = False
    without_high: bool = False

    def holds(self, amount: Amount) -> bool:
        value = amount.value
        above = value > self.low if self.without_low else value >= self.low
        below = value < self.high if self.without_high else value <= self.high
        return amount.dimension == self.dimension and above and below


def counted(question: str, codes: Codes = DEFAULT) -> tuple[Amount, ...]:
    """Return the amounts of a question that have a unit, but for times of day and ordinals."""
    amounts = claims_of(question, codes).amounts(question)
    return tuple(a for a in amounts if a.dimension not in ("", "clock", "ordinal"))


def holds(amounts: Sequence[Amount], header: str, row: str, codes: Codes = DEFAULT) -> bool:
    """Whether a cell of a table row is a range with one of the amounts.

    The unit of the range stands in the cell or at the start of its column name: `Years of service`.
    Of a row without cells the text before its second or its third amount counts as a cell.
    """
    if not amounts:
        return False
    both = columns(header, row) if cells(row) else tuple((header, cell) for cell in _starts(row))
    return any(
        each.holds(amount)
        for name, cell in both
        for each in _ranges(name, cell, codes)
        for amount in amounts
    )


def _starts(row: str) -> Iterator[str]:
    """Iterate over the first cells that a row without marks between its cells may have."""
    ends = [amount.start for amount in digits(row)][1:3]
    yield from (row[:end].strip() for end in ends)


@lru_cache(maxsize=1024)
def _ranges(name: str, cell: str, codes: Codes) -> tuple[_Range, ...]:
    """Return the range that a cell is in each language that reads it as one."""
    return tuple(_read(name, cell, codes)) if len(cell) <= LONGEST else ()


def _read(name: str, cell: str, codes: Codes) -> Iterator[_Range]:
    for one in languages(codes):
        ends = _with_unit(name, cell, one)
        if len(ends) == 2 and (both := _two_ends(cell, ends[0], ends[1], one)):
            yield both
        elif len(ends) == 1 and (open_range := _one_end(cell, ends[0], one)):
            yield open_range


def _with_unit(name: str, cell: str, one: Language) -> list[Amount]:
    """Return the amounts of a cell, with the unit of the last one or of the column name."""
    amounts = list(one.claims.amounts(cell))
    unit = amounts[-1] if amounts else None
    if unit and not unit.dimension:
        unit = next((a for a in one.claims.amounts(f"2 {name}") if a.start == 0), unit)
    if unit is None or not unit.dimension or not unit.number:
        return []
    scale = unit.value / unit.number
    return [
        a if a.dimension else a._replace(dimension=unit.dimension, value=a.number * scale)
        for a in amounts
    ]


def _two_ends(cell: str, low: Amount, high: Amount, one: Language) -> _Range | None:
    """Read `3 to 5`, `3 or more, under 5`, `at least 3 but less than 5`, `3년 이상 5년 미만`."""
    rules = one.ranges
    before, behind = cell[: low.start].strip(), cell[high.end :].strip()
    middle = _middle(rules).fullmatch(cell[low.end : high.start].strip())
    if (
        low.dimension != high.dimension
        or low.value > high.value
        or middle is None
        or not (middle["join"] or middle["upper"] or (middle["lower"] and behind))
        or (before and not _is(before, rules.lower_before))
        or (behind and not _is(behind, rules.upper_behind))
    ):
        return None
    lower, upper = middle["lower"] or before, middle["upper"] or behind
    return _Range(
        low.dimension, low.value, high.value, _excludes(lower, one), _excludes(upper, one)
    )


@lru_cache(maxsize=16)
def _middle(rules: Ranges) -> re.Pattern[str]:
    """The words between two ends: those behind the lower one, a link, those before the upper."""
    lower, upper = "|".join(rules.lower_behind), "|".join(rules.upper_before)
    join = "|".join((*_BETWEEN, ",", *rules.between))
    pattern = rf"(?P<lower>{lower})?\s*(?P<join>{join})?\s*(?P<upper>{upper})?"
    return re.compile(pattern, re.I)


def _one_end(cell: str, end: Amount, one: Language) -> _Range | None:
    rules = one.ranges
    before, behind = cell[: end.start].strip(), cell[end.end :].strip()
    word, is_before = (before, True) if before else (behind, False)
    if bool(before) == bool(behind):  # words on both sides, or none
        return None
    lower = (
        (*_LOWER_BEFORE, *rules.lower_before) if is_before else _lower_behind(rules.lower_behind)
    )
    upper = (*_UPPER_BEFORE, *rules.upper_before) if is_before else rules.upper_behind
    without = _excludes(word, one)
    if _is(word, lower):
        return _Range(end.dimension, end.value, inf, without_low=without)
    if _is(word, upper):
        return _Range(end.dimension, -inf, end.value, without_high=without)
    return None


def _lower_behind(words: Sequence[str]) -> tuple[str, ...]:
    return (*_LOWER_BEHIND, *words)


def _is(text: str, patterns: Sequence[str]) -> bool:
    return bool(patterns) and re.fullmatch("|".join(patterns), text, re.I) is not None


def _excludes(words: str, one: Language) -> bool:
    return words in _WITHOUT or one.ranges.without.search(words) is not None
