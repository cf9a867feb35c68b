"""Days as they are written in English and Korean."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = (
    r"(?P<month{n}>Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
MONTH = _MONTH.format(n="")
"""A month's name in English, as a pattern with the group `month`."""

_FORMS = (
    r"(?P<y1>\d{4}|['’]\d{2})\s?년\s*(?P<m1>\d{1,2})\s?월\s*(?P<d1>\d{1,2})\s?일",
    r"(?P<y2>\d{4}|['’]\d{2})(?P<dot>\s?\.\s?|[-/])(?P<m2>\d{1,2})(?P=dot)(?P<d2>\d{1,2})(?!\d)",
    rf"(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?\s(?:day\sof\s|of\s)?{_MONTH.format(n=3)},?\s(?P<y3>\d{{4}})",
    rf"{_MONTH.format(n=4)}\s(?P<d4>\d{{1,2}})(?:st|nd|rd|th)?,?\s(?P<y4>\d{{4}})",
)
_DATE = re.compile(rf"(?<![\w.-])(?:{'|'.join(_FORMS)})(?!\d)", re.I)


def month_number(name: str) -> int:
    """The number of a month by its English name, or the beginning of it."""
    return _MONTHS.index(name[:3].lower()) + 1


@dataclass(frozen=True)
class Day:
    """A day and where it stands, a full stop behind it left out."""

    day: date
    start: int
    end: int


def days(text: str) -> Iterator[Day]:
    """Every whole date in order: `2024. 1. 31.`, `2024년 1월 31일`, `31 January 2024`, ISO 8601.

    What is no day of the calendar, or can be read two ways as 03/04/2024 can, is left out.
    """
    for match in _DATE.finditer(text):
        found = {name: value for name, value in match.groupdict().items() if value is not None}
        n = next(name[1] for name in found if name[0] == "y")
        year = found[f"y{n}"].lstrip("'’")
        month = found.get(f"m{n}") or month_number(found[f"month{n}"])
        try:
            day = date(int(year) + 2000 * (len(year) == 2), int(month), int(found[f"d{n}"]))
        except ValueError:
            continue
        yield Day(day, match.start(), match.end())
