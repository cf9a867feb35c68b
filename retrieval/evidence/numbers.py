"""Numbers of questions and statements: counts, and what a passage must contain."""

import re

from callslip.languages import DEFAULT, Codes, languages
from callslip.retrieval.evidence.kinds import has_number
from callslip.retrieval.messages import Hit

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


def asks_count(question: str, codes: Codes = DEFAULT) -> bool:
    """Whether only a number answers a question: `how many`, `얼마`."""
    return any(one.kinds.counted.search(question) for one in languages(codes))


def has_count(statement: str, codes: Codes = DEFAULT) -> bool:
    """Whether a statement has a number that counts, not one that is part of a name: `Region 5`."""
    return has_number(_DESIGNATED.sub(" ", statement), codes)


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


def around(hit: Hit) -> str:
    """Return the text of a passage, with its title and its headings."""
    return "\n".join((hit.title, hit.section, hit.heading, hit.text))


def _numerals(text: str) -> list[str]:
    return [re.sub(r",(?=\d{3}(?!\d))", "", number) for number in _NUMERAL.findall(text)]
