"""Numbers of questions and statements: counts, and what a passage must contain."""

import re

from callslip.languages import DEFAULT, Codes, languages
from callslip.retrieval.evidence.kinds import has_number
from callslip.retrieval.messages import Hit

_NUMERAL = re.compile(r"(?<![\d.,])\d+(?:[.,]\d+)*(?![\d])")
_DESIGNATED = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+ \d{1,2}(?![\d%]|[.,]\d|\s(?:[a-z]|%))")
"""A number that is part of a name, within a sentence: `Region 5`, not `Leave 20 days`."""

PARTS = (
    *("version", "article", "section", "chapter", "part", "rule", "step", "level", "class"),
    *("type", "form"),
)
"""Names of parts and editions that a number may follow in lower case."""

YEAR = re.compile(r"(?:19|20)\d\d")
_NAMED = re.compile(
    r"(?:(?<=\S )[A-Z][A-Za-z]*"
    r"|\A[A-Z][A-Za-z]*(?=\s[\d.]+(?:\s(?:is|was|has|will|can)\b|[는은이가을를의에,]))"
    rf"|(?i:\b(?:{'|'.join(PARTS)})))"
    r"[ ](?P<number>\d+(?:\.\d+)*)(?!\d|,\d|\s?%)"
    r"|(?:(?i:\b(?:sec|art)\.)|§)\s?(?P<section>\d+(?:\.\d+)*)"
    r"|제\s?(?P<unit>\d+)\s?[장절항호]"
    r"|(?:제\s?(?P<article>\d+)\s?조|(?<![\d.,])(?P<bare>\d+)조(?=의\s?\d|에\s|\s?제?\s?\d+\s?항))"
    r"(?:\s?의\s?(?P<branch>\d+))?"
)
_ARTICLE = re.compile(r"\bArt(?:icle|\.) ?(\d+)\b", re.I)
_YEARS = re.compile(rf"(?<![\d.,]){YEAR.pattern}(?!\d|[.,]\d{{3}})")


def asks_count(question: str, codes: Codes = DEFAULT) -> bool:
    """Whether only a number answers a question: `how many`, `얼마`."""
    return any(one.kinds.counted.search(question) for one in languages(codes))


def has_count(statement: str, codes: Codes = DEFAULT) -> bool:
    """Whether a statement has a number that counts, not one that is part of a name: `Region 5`."""
    return has_number(_DESIGNATED.sub(" ", statement), codes)


def named_numbers(question: str) -> frozenset[str]:
    """The numbers behind names in a question, without years: `Vue 4`, `Section 54`, `제5장`.

    A Korean article is a number with its unit: `5조`, `5조의2`. A passage without them is about
    something else.
    """
    return frozenset(filter(None, map(_named, _NAMED.finditer(question))))


def _named(match: re.Match[str]) -> str:
    if article := match["article"] or match["bare"]:
        return f"{article}조의{match['branch']}" if match["branch"] else f"{article}조"
    number = match["number"] or match["section"] or match["unit"]
    return "" if YEAR.fullmatch(number) else number


def has_numbers(numbers: frozenset[str], text: str) -> bool:
    """Whether a text has all these numbers: `4` is in `4` and `4.0`, not in `3.4`.

    `5조` is in `제 5 조` and `Article 5`, not in `제5조의2` and not in `5일`.
    """
    there, articles = _numerals(text), named_numbers(text)
    articles |= {f"{number}조" for number in _ARTICLE.findall(text)}
    return all(
        n in articles if "조" in n else any(each == n or each.startswith(f"{n}.") for each in there)
        for n in numbers
    )


def has_later_years(text: str, year: int) -> bool:
    """Whether a text has years, and all of them are after this one."""
    years = [int(each) for each in _YEARS.findall(text)]
    return bool(years) and min(years) > year


def around(hit: Hit) -> str:
    """Return the text of a passage, with its title and its headings."""
    return "\n".join((hit.title, hit.section, hit.heading, hit.text))


def _numerals(text: str) -> list[str]:
    return [re.sub(r",(?=\d{3}(?!\d))", "", number) for number in _NUMERAL.findall(text)]
