"""Ranges of amounts in table rows: the row `3 to 5` is the one for a question about four years.

A row that is chosen wrongly is a wrong answer, so what can be read in two ways is not read:
`1~3억`, `2 hours 30 minutes`, a list (`5, 10`), a year of the calendar.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import inf, nextafter
from typing import NamedTuple

from callslip.languages import DEFAULT, Codes, languages
from callslip.languages.contract import Amount, Claims, Ranges, digits
from callslip.retrieval.evidence.clauses import claims_of
from callslip.retrieval.evidence.table_rows import cells, columns

LONGEST = 60
"""The maximum number of characters of a cell that is a range, and of a row without cells."""

YEAR = 1000
"""The least number of years that is a year of the calendar: `2026년`."""

_APOSTROPHES = frozenset("'\u2018\u2019")
"""Characters before a year of two digits: `'24년`."""

_BETWEEN = ("-", "\u2013", "\u2014", "~", "\u301c", "\uff5e")
_LOWER_BEFORE, _LOWER_BEHIND = (">", ">=", "\u2265"), (r"\+", "~", "-", "\u2013")
_UPPER_BEFORE = ("<", "<=", "\u2264", "~")
_WITHOUT = frozenset("<>")
_IN_BRACKETS = re.compile(r"\(([^()]+)\)$")
_DIGITS = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


class QuestionAmount(NamedTuple):
    """An amount of a question in the smallest unit of its dimension, with its currency."""

    dimension: str
    value: float
    currency: frozenset[str] = frozenset()


class _Range(NamedTuple):
    """Amounts of one dimension from `low` to `high`."""

    dimension: str
    low: float
    high: float
    currency: frozenset[str] = frozenset()

    def has(self, amount: QuestionAmount) -> bool:
        """Whether an amount is in the range; one in another currency is not."""
        other = self.currency and amount.currency and not self.currency & amount.currency
        inside = self.low <= amount.value <= self.high
        return self.dimension == amount.dimension and inside and not other


@lru_cache(maxsize=64)
def amounts_of(question: str, codes: Codes = DEFAULT) -> tuple[QuestionAmount, ...]:
    """Return the amounts of a question that have a unit.

    Times of day, dates, ordinals, years of the calendar and amounts of several parts (`2 hours 30
    minutes`, `1억 2천만원`) are left out. `more than 10 years` is the next float above ten years,
    and `less than 1 year` the one below a year.
    """
    claims, made = claims_of(question, codes), list[QuestionAmount]()
    amounts = list(claims.amounts(question))
    joined = {
        each
        for one, other in pairwise(amounts)
        if _joins(question[one.end : other.start].strip(), codes)
        for each in (one, other)
    }
    for amount in amounts:
        apostrophe = question[: amount.start][-1:] in _APOSTROPHES
        if amount not in joined and not apostrophe and _counts(amount):
            value = _compared(question, amount, codes)
            made.append(QuestionAmount(amount.dimension, value, _currency(question, amount, codes)))
    return tuple(made)


def in_range(
    amounts: Sequence[QuestionAmount], header: str, row: str, codes: Codes = DEFAULT
) -> bool:
    """Whether a row has an amount in its first range of the dimension of the amount.

    The unit of the range stands in the cell, or in its column name at the start or in brackets at
    the end: `Years of service`, `근속 기간(년)`. Of a short row without cells the text before its
    third or its second number counts as a cell.
    """
    if not amounts:
        return False
    read: Sequence[_Range]
    if cells(row):
        read = [each for name, cell in columns(header, row) for each in _ranges(name, cell, codes)]
    else:
        read = next((r for start in _starts(row) if (r := _ranges(header, start, codes))), [])
    first = {each.dimension: each for each in reversed(read)}
    return any(a.dimension in first and first[a.dimension].has(a) for a in amounts)


def _counts(amount: Amount) -> bool:
    """Whether an amount counts something; `clock` is a time of day, 2026년 a year."""
    is_year = amount.dimension == "months" and amount.number >= YEAR
    return amount.dimension not in ("", "clock", "ordinal", "month of the year") and not is_year


def _compared(text: str, amount: Amount, codes: Codes) -> float:
    """Return the value of an amount, or the next float if the words around it exclude the amount.

    That is the one above for `over 5 years`, and the one below for `5년 미만`.
    """
    before, behind = text[: amount.start].rstrip(), text[amount.end :].lstrip()
    for one in languages(codes):
        rules = one.ranges
        for towards, ahead, following in (
            (inf, rules.lower_before, rules.lower_behind),
            (-inf, rules.upper_before, rules.upper_behind),
        ):
            words = _at_end(ahead).search(before) or _at_start(following).match(behind)
            if words and _excludes(words[0], rules):
                return nextafter(amount.value, towards)
    return amount.value


@lru_cache(maxsize=32)
def _at_end(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns) or '(?!)'})$", re.I)


@lru_cache(maxsize=32)
def _at_start(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?:{'|'.join(patterns) or '(?!)'})", re.I)


def _joins(text: str, codes: Codes) -> bool:
    """Whether two amounts with this text between them are one: `2 hours 30 minutes`."""
    return not text or any(_is(text, one.ranges.joins) for one in languages(codes))


def _currency(text: str, amount: Amount, codes: Codes) -> frozenset[str]:
    if amount.dimension != "money":
        return frozenset()
    return claims_of(text, codes).measures(text, amount)


def _starts(row: str) -> Iterator[str]:
    """Iterate over the first cells that a row without cells may have, the longest first."""
    if len(row) <= LONGEST:
        ends = [amount.start for amount in digits(row)][1:3]
        starts = (row[:end].strip() for end in reversed(ends))
        yield from (start for start in starts if not start.endswith(_BETWEEN))


def _ranges(name: str, cell: str, codes: Codes) -> Sequence[_Range]:
    """Return the range that a cell is, for each language that reads one."""
    return _read(name[:LONGEST], cell, codes) if len(cell) <= LONGEST else ()


@lru_cache(maxsize=1024)
def _read(name: str, cell: str, codes: Codes) -> tuple[_Range, ...]:
    cell, name = " ".join(cell.split()), " ".join(name.split())
    read: list[_Range] = []
    for one in languages(codes):
        ends = _with_unit(name, cell, one.claims)
        if len(ends) == 2:
            made = _two_ends(cell, ends[0], ends[1], one.ranges)
        else:
            made = _one_end(cell, ends[0], one.ranges) if ends else None
        if made:
            read.append(made._replace(currency=_currency(cell, ends[-1], codes)))
    return tuple(read)


def _with_unit(name: str, cell: str, claims: Claims) -> list[Amount]:
    """Return the amounts of a cell, with the unit of the last one or of the column name.

    Return none if there is no unit, if an amount is a year of the calendar, a time of day or an
    ordinal, or if only the last one has a scale, which may belong to both: `1~3억원`.
    """
    amounts = list(claims.amounts(cell))
    unit = next((a for a in reversed(amounts) if a.dimension), None) or _unit(name, claims)
    if unit is None or not unit.number:
        return []
    if len(amounts) == 2 and _has_scale(cell, amounts[1]) and not _has_scale(cell, amounts[0]):
        return []
    scale = unit.value / unit.number
    ends = [
        a if a.dimension else a._replace(dimension=unit.dimension, value=a.number * scale)
        for a in amounts
    ]
    return ends if all(map(_counts, ends)) else []


def _unit(name: str, claims: Claims) -> Amount | None:
    """Return the amount of 2 in the unit at the start of a column name or in brackets at its end.

    A word that goes on behind the letters of a unit is none: `일정`, `번호`.
    """
    inside = _IN_BRACKETS.search(name)
    for text in (f"2 {name}", f"2 {inside[1]}" if inside else ""):
        first = next(claims.amounts(text), None)
        if first and first.start == 0 and first.dimension and not text[first.end :][:1].isalpha():
            return first._replace(number=2.0)  # a scale is of the unit: `million euros`
    return None


def _has_scale(cell: str, amount: Amount) -> bool:
    """Whether an amount is more than its digits: `3 million`."""
    plain = _DIGITS.search(cell, amount.start, amount.end)
    return plain is not None and float(plain[0].replace(",", "")) != amount.number


def _two_ends(cell: str, low: Amount, high: Amount, rules: Ranges) -> _Range | None:
    """Read `3 to 5`, `3 or more, under 5`, `at least 3 but less than 5`, `3년 이상 5년 미만`."""
    before, behind = cell[: low.start].strip(), cell[high.end :].strip()
    middle = _middle(rules).fullmatch(cell[low.end : high.start].strip())
    if (
        low.dimension != high.dimension
        or low.value > high.value
        or middle is None
        or not (middle["join"] or middle["upper"] or (middle["lower"] and behind))
        or (_is_list(middle["join"], rules) and not (before or middle["lower"] or middle["upper"]))
        or (before and not _is(before, rules.lower_before))
        or (behind and not _is(behind, rules.upper_behind))
    ):
        return None
    least = _end(low, middle["lower"] or before, inf, rules)
    return _Range(low.dimension, least, _end(high, middle["upper"] or behind, -inf, rules))


def _is_list(join: str | None, rules: Ranges) -> bool:
    """Whether a text makes two numbers a list (`5, 10`) unless words mark an end of a range."""
    return join == "," or (join is not None and _is(join, rules.joins))


@lru_cache(maxsize=16)
def _middle(rules: Ranges) -> re.Pattern[str]:
    """The words between two ends: those behind the lower one, a link, those before the upper."""
    lower, upper = "|".join(rules.lower_behind), "|".join(rules.upper_before)
    join = "|".join((*_BETWEEN, ",", *rules.between))
    pattern = rf"(?P<lower>{lower})?\s*(?P<join>{join})?\s*(?P<upper>{upper})?"
    return re.compile(pattern, re.I)


def _one_end(cell: str, end: Amount, rules: Ranges) -> _Range | None:
    """Read `over 10`, `10 or more`, `up to 5`, `5년 이하`: words on one side of the amount."""
    before, behind = cell[: end.start].strip(), cell[end.end :].strip()
    if bool(before) == bool(behind):  # words on both sides, or none
        return None
    words = before or behind
    lower = (
        (*_LOWER_BEFORE, *rules.lower_before) if before else (*_LOWER_BEHIND, *rules.lower_behind)
    )
    upper = (*_UPPER_BEFORE, *rules.upper_before) if before else rules.upper_behind
    if _is(words, lower):
        return _Range(end.dimension, _end(end, words, inf, rules), inf)
    if _is(words, upper):
        return _Range(end.dimension, -inf, _end(end, words, -inf, rules))
    return None


def _end(amount: Amount, words: str, inwards: float, rules: Ranges) -> float:
    """Return the value of an end of a range, or the next one inwards if the words exclude it."""
    return nextafter(amount.value, inwards) if _excludes(words, rules) else amount.value


def _is(text: str, patterns: Sequence[str]) -> bool:
    return re.fullmatch("|".join(patterns), text, re.I) is not None


def _excludes(words: str, rules: Ranges) -> bool:
    return words in _WITHOUT or rules.without.search(words) is not None
