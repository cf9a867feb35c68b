"""Parser of the periods in a question, both calendar periods and periods relative to today."""

import re
from calendar import monthrange
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache

from callslip.languages import DEFAULT, Codes, calendar, language, languages
from callslip.languages.contract import Calendar, Unit
from callslip.models.entities.dates import days, month_number


@dataclass(frozen=True)
class Period:
    """The first and last day of a period, and the span of the words that name the period.

    `ambiguous` is true if the words are digits that can have another meaning. `relative` is true if
    the words count from today.
    """

    first: date
    last: date
    start: int
    end: int
    ambiguous: bool = False
    relative: bool = False


def periods(text: str, today: date, codes: Codes = DEFAULT) -> list[Period]:
    """Return the periods that a text names, in text order and without overlaps.

    Years before 1900 and dates that do not exist in the calendar are left out.
    """
    chosen: list[Period] = []
    relative = (
        replace(period, relative=True)
        for period in (*_counted(text, today, codes), *_named(text, today, codes))
    )
    for period in (*_days(text, codes), *_calendar(text, codes), *relative):
        if all(period.end <= other.start or other.end <= period.start for other in chosen):
            chosen.append(period)
    return sorted(chosen, key=lambda period: period.start)


# Calendar periods

_DOTTED = re.compile(r"\d\.(?=\s?[가-힣])")
"""The full stop of `2020. 3. 1. 기준`, which is part of the date."""


def _days(text: str, codes: Codes) -> Iterator[Period]:
    for day in days(text, codes):
        if day.day.year >= 1900:
            end = day.end + bool(_DOTTED.match(text, day.end - 1))
            yield Period(day.day, day.day, day.start, end)


def _calendar(text: str, codes: Codes) -> Iterator[Period]:
    """Find calendar periods; the last language's forms come first.

    In `Q1 2020 년` the year has a Korean form.
    """
    forms = [
        (form, one.calendar) for one in reversed(languages(codes)) for form in one.calendar.periods
    ]
    forms += [(form, Calendar()) for form in calendar.PERIODS]
    for form, words in forms:
        for match in form.finditer(text):
            parts = {name: value for name, value in match.groupdict().items() if value is not None}
            year = int(parts["year"]) if "year" in parts else 2000 + int(parts["short"])
            first, last = _months(parts, words, codes)
            yield _of_months(year, first, last, match, ambiguous="bare" in parts)


def _months(parts: Mapping[str, str], words: Calendar, codes: Codes) -> tuple[int, int]:
    """Return the first and the last month of the named part of a year."""
    if month := parts.get("month_no"):
        return int(month), int(month)
    if "month" in parts:
        number = month_number(parts["month"], codes)
        return number, number
    if quarter := parts.get("quarter"):
        nth = _number(quarter, words.ordinals)
        return 3 * nth - 2, 3 * nth
    if half := parts.get("half"):
        return (1, 6) if _number(half, words.halves) == 1 else (7, 12)
    edge = parts.get("edge", "").lower()
    return (1, 3) if words.beginnings and edge.startswith(words.beginnings) else (1, 12)


def _number(text: str, words: Mapping[str, int]) -> int:
    return int(text) if text.isdecimal() else words[text.lower()]


def _of_months(
    year: int, first: int, last: int, match: re.Match[str], *, ambiguous: bool = False
) -> Period:
    end = date(year, last, monthrange(year, last)[1])
    return Period(date(year, first, 1), end, *match.span(), ambiguous)


# Periods relative to today


def _counted(text: str, today: date, codes: Codes) -> Iterator[Period]:
    """Find counted times: `two years ago` is the single day two years before today."""
    for one in languages(codes):
        words = one.relative_times
        for match in words.counted.finditer(text):
            unit = words.units[match["unit"].lower()]
            day = _shifted(today, unit, -_number(match["count"], words.numbers))
            yield Period(day, day, *match.span())


def _named(text: str, today: date, codes: Codes) -> Iterator[Period]:
    for code in codes:
        pattern, named = _names(code)
        for match in pattern.finditer(text):
            _, unit, shift = named[int((match.lastgroup or "w0")[1:])]
            yield _around(_shifted(today, unit, shift), unit, match)


@cache
def _names(code: str) -> tuple[re.Pattern[str], tuple[tuple[str, Unit, int], ...]]:
    """Return the time names of a language as one pattern, whose group `wN` is the Nth name."""
    words = language(code).relative_times
    if not words.named:
        return re.compile(r"(?!)"), ()
    names = "|".join(f"(?P<w{n}>{name})" for n, (name, _, _) in enumerate(words.named))
    return re.compile(f"{words.before}(?:{names}){words.after}", re.I), words.named


def _around(day: date, unit: Unit, match: re.Match[str]) -> Period:
    """Return the year, quarter, month, week or day that contains a day."""
    if unit == "year":
        return _of_months(day.year, 1, 12, match)
    if unit == "quarter":
        first = day.month - (day.month - 1) % 3
        return _of_months(day.year, first, first + 2, match)
    if unit == "month":
        return _of_months(day.year, day.month, day.month, match)
    monday = day - timedelta(days=day.weekday()) if unit == "week" else day
    return Period(monday, monday + timedelta(days=6 * (unit == "week")), *match.span())


def _shifted(day: date, unit: Unit, count: int) -> date:
    """Return the day `count` units later; in a shorter month, at most the month's last day."""
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + count * {"year": 12, "quarter": 3, "month": 1}[unit]
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
