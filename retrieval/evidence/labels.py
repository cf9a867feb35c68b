"""Labels with a number in a question: `X300`, `Heron 5`, `flat 27A`, `4.1.0`, `4급지`.

A text that has the name of such a label with other numbers alone is about something else. A text
that has the name with a range or a list (`Windows 7 or later`, `3~5등급`) may mean the label too.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from callslip.languages import DEFAULT, Codes, languages
from callslip.retrieval.evidence.kinds import UNIT

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

_GENERAL = frozenset(
    (
        *("article", "chapter", "class", "form", "level", "page", "part", "rule", "section"),
        *("step", "type", "version"),
    )
)
"""Names of parts of a document, of which a passage mentions others: `see Section 3`."""

_YEAR = re.compile(r"(?:19|20)\d\d")
_JOINED_BEFORE = re.compile(r"\d\s?(?:[-~\u2013,/&]|or|and|to|및|와|과)\s?$")
_JOINED_BEHIND = re.compile(
    r"\s?(?:\+|~|(?:[-\u2013,/&]|\b(?:or|and|to|through)\b)\s?(?:\d|later|newer|above|up\b|higher"
    r"|over|below|older)|이상|이하|초과|미만|까지|부터|이내|[,·및와과]\s?\d|또는)"
)


class Label(NamedTuple):
    """A name with a number. `pattern` matches the name in a text, with any number as group 1."""

    pattern: re.Pattern[str]
    number: str


@lru_cache(maxsize=64)
def labels_of(question: str, codes: Codes = DEFAULT) -> tuple[Label, ...]:
    """Return the labels of a question, without amounts, dates, and parts of a document."""
    made = list[Label]()
    for match in (*_CODE.finditer(question), *_NAMED.finditer(question)):
        name, number = match["name"], match["number"]
        counts = match.re is _NAMED and _counts(question[match.start("number") :][:UNIT], codes)
        if not counts and not _YEAR.fullmatch(number) and not _is_general(name, number, codes):
            made.append(Label(_named(name), number))
    for match in _LETTERED.finditer(question):
        if not _counts(match[0], codes):
            pattern = re.compile(rf"(?<![\w.,-]){match['name']}([A-Z])(?![A-Za-z\d_-])")
            made.append(Label(pattern, match["number"]))
    made += [Label(_VERSION, match[1]) for match in _VERSION.finditer(question)]
    for one in languages(codes):
        for match in one.kinds.labels.finditer(question):
            name = r"\s?".join(match["name"].split())
            pattern = re.compile(rf"(?<![\d.,]){_NUMBER}\s?{name}")
            made.append(Label(pattern, match["number"]))
    return tuple(made)


def has_labels(labels: tuple[Label, ...], text: str) -> bool:
    """Whether a text has one of the labels of each name, or nothing of the name."""
    numbers: dict[re.Pattern[str], set[str]] = {}
    for label in labels:
        numbers.setdefault(label.pattern, set()).add(label.number)
    return all(_has(pattern, wanted, text) for pattern, wanted in numbers.items())


def _has(pattern: re.Pattern[str], wanted: set[str], text: str) -> bool:
    there = list(pattern.finditer(text))
    return not there or any(
        any(f"{match[1]}.".startswith(f"{number}.") for number in wanted)
        or _JOINED_BEHIND.match(text, match.end())
        or _JOINED_BEFORE.search(text[max(0, match.start(1) - 8) : match.start(1)])
        for match in there
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
