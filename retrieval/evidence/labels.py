"""Labels with a number in a question: `X300`, `Heron 5`, `flat 27A`, `4.1.0`, `4급지`.

A text that has the name of such a label with other numbers alone is about something else. A text
that has the name with a range or a list (`Windows 7 or later`, `3~5등급`) may mean the label too.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Set
from functools import lru_cache

from callslip.languages import DEFAULT, Codes, languages
from callslip.retrieval.evidence.kinds import UNIT
from callslip.retrieval.evidence.numbers import PARTS, YEAR

_CODE = re.compile(
    r"(?<![A-Za-z\d_.-])(?P<name>[A-Za-z]{1,8})-?(?P<number>\d{1,5})(?![A-Za-z\d_-]|[.,]\d)"
)
_NAMED = re.compile(
    r"(?<=\S )(?P<name>[A-Z][a-z]{2,}) (?P<number>\d{1,4}(?:\.\d+)*)(?![A-Za-z\d_%-]|[.,]\d|\s%)"
)
_LETTERED = re.compile(r"(?<![\w.,-])(?P<name>\d{1,4})(?P<number>[A-Z])(?![A-Za-z\d_-])")
_VERSION = re.compile(r"(?<![\d.])(\d{1,3}(?:\.\d{1,4}){2,3})(?!\.?\d)")

_NUMBER = r"(\d+(?:\.\d+)*)"
_SHORT = 2
"""The most letters of a name that a text has in capitals and without a space: `X300`, not `a 5`."""

_GENERAL = frozenset((*PARTS, "page"))
"""Names of parts of a document, of which a passage mentions others: `see Section 3`."""

_JOINED_BEFORE = re.compile(r"\d\s?[-~\u2013,/&]\s?$")
_JOINED_BEHIND = re.compile(r"\s?(?:\+|~|[-\u2013,/&\u00b7]\s?\d)")

Labels = Mapping[re.Pattern[str], Set[str]]
"""The numbers by patterns that match their name in a text, with any number as group 1."""


@lru_cache(maxsize=64)
def labels_of(question: str, codes: Codes = DEFAULT) -> Labels:
    """Return the labels of a question, without amounts, dates, and parts of a document."""
    labels: dict[re.Pattern[str], set[str]] = defaultdict(set)
    for match in (*_CODE.finditer(question), *_NAMED.finditer(question)):
        name, number = match["name"], match["number"]
        counts = match.re is _NAMED and _counts(question[match.start("number") :][:UNIT], codes)
        if not counts and not YEAR.fullmatch(number) and not _is_general(name, number, codes):
            labels[_named(name)].add(number)
    for match in _LETTERED.finditer(question):
        if not _counts(match[0], codes):
            pattern = re.compile(rf"(?<![\w.,-]){match['name']}([A-Z])(?![A-Za-z\d_-])")
            labels[pattern].add(match["number"])
    for match in _VERSION.finditer(question):
        labels[_VERSION].add(match[1])
    for one in languages(codes):
        for match in one.kinds.labels.finditer(question):
            name = r"\s?".join(match["name"].split())
            labels[re.compile(rf"(?<![\d.,]){_NUMBER}\s?{name}")].add(match["number"])
    return labels


def has_labels(labels: Labels, text: str, codes: Codes = DEFAULT) -> bool:
    """Whether a text has one of the labels of each name, or nothing of the name."""
    return all(_has(pattern, numbers, text, codes) for pattern, numbers in labels.items())


def _has(pattern: re.Pattern[str], numbers: Set[str], text: str, codes: Codes) -> bool:
    there = list(pattern.finditer(text))
    return not there or any(
        any(f"{match[1]}.".startswith(f"{number}.") for number in numbers)
        or _is_joined(text, match, codes)
        for match in there
    )


def _is_joined(text: str, match: re.Match[str], codes: Codes) -> bool:
    """Whether a number is a part of a range or a list."""
    before = text[max(0, match.start(1) - 8) : match.start(1)]
    kinds = [one.kinds for one in languages(codes)]
    return any(
        pattern.search(before) for pattern in (_JOINED_BEFORE, *(k.joined_before for k in kinds))
    ) or any(
        pattern.match(text, match.end())
        for pattern in (_JOINED_BEHIND, *(k.joined_behind for k in kinds))
    )


@lru_cache(maxsize=256)
def _named(name: str) -> re.Pattern[str]:
    if len(name) <= _SHORT:
        return re.compile(rf"(?<![A-Za-z0-9]){name.upper()}-?{_NUMBER}(?![A-Za-z])")
    return re.compile(rf"(?<![A-Za-z0-9]){name}[ -]?{_NUMBER}(?![A-Za-z])", re.I)


def _is_general(name: str, number: str, codes: Codes) -> bool:
    """Whether a name is a part of a document, a month, a day of the week or a unit."""
    is_date = any(one.kinds.date.search(name) for one in languages(codes))
    return name.lower() in _GENERAL or is_date or _counts(f"{number} {name}", codes)


def _counts(text: str, codes: Codes) -> bool:
    """Whether a text is an amount with a unit."""
    return any(
        amount.dimension and amount.start == 0
        for one in languages(codes)
        for amount in one.claims.amounts(text)
    )
