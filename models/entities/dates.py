"""Parsing of dates in text."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache

from callslip.languages import DEFAULT, Codes, calendar, languages


@dataclass(frozen=True)
class Day:
    """A day and its span in the text, without a full stop that follows."""

    day: date
    start: int
    end: int


def days(text: str, codes: Codes = DEFAULT) -> Iterator[Day]:
    """Iterate over the complete dates in a text, in order.

    Examples are `2024. 1. 31.`, `2024년 1월 31일`, `31 January 2024` and ISO 8601. Dates that the
    calendar does not have and ambiguous dates (03/04/2024) are left out.
    """
    for match in _pattern(codes).finditer(text):
        parts = {
            name.partition("_")[2]: value
            for name, value in match.groupdict().items()
            if value is not None
        }
        year = parts["year"].lstrip("'’")
        month = parts.get("month_no") or month_number(parts["month"], codes)
        try:
            day = date(int(year) + 2000 * (len(year) == 2), int(month), int(parts["day"]))
        except ValueError:
            continue
        yield Day(day, match.start(), match.end())


def month_number(name: str, codes: Codes = DEFAULT) -> int:
    """Return the number of the month with this name; raise StopIteration if there is none."""
    return next(n for pattern, n in _months(codes).items() if pattern.fullmatch(name))


@cache
def _months(codes: Codes) -> Mapping[re.Pattern[str], int]:
    return {
        re.compile(name, re.I): n
        for language in languages(codes)
        for n, name in enumerate(language.calendar.months, 1)
    }


@cache
def _pattern(codes: Codes) -> re.Pattern[str]:
    """Return one pattern for all forms; the group names of form n begin with `f{n}_`."""
    forms = [*calendar.DAYS]
    for language in languages(codes):
        forms += language.calendar.days
    named = (
        form.replace("(?P<", f"(?P<f{n}_").replace("(?P=", f"(?P=f{n}_")
        for n, form in enumerate(forms)
    )
    return re.compile(rf"(?<![\w.-])(?:{'|'.join(named)})(?!\d)", re.I)
