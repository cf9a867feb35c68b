"""The time that a question asks about, as one day: `as of 2019`, `2020년 3월 기준`.

Each form becomes one day:

- a period becomes its last day, or today if the period is not over: a rule that took effect during
  a year is in force at the end of the year;
- `before 2015` becomes the day before the period;
- `since 2015` becomes today, or the period's first day if that day is in the future;
- `from 2015 to 2018` becomes the last day of 2018.

If a question states two different times, it compares them and no day is returned.

A number alone is a year only if a word such as `in` precedes it: `RFC 2019`, `Article 2020`,
`제2019호` and `2019 Novel` are names. A time that describes the subject (`born in 1990`,
`2015년 이후 입사자`), or the date in the name of a law or a ruling, does not choose a version.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache
from typing import Literal

from callslip.languages import DEFAULT, Codes, languages
from callslip.languages.contract import TimeCues
from callslip.retrieval.query.periods import Period, periods

LONGEST = 2_000
"""The number of characters of a question that are analyzed."""


@dataclass(frozen=True)
class TimeExpression:
    """A day, and the words of the question that state it, with their span."""

    day: date
    words: str
    start: int
    end: int
    firm: bool
    """True if the words can only mean the state at that time (`as of 2019`, `last year`); false for
    `in 2019`."""


def read_time(question: str, today: date, codes: Codes = DEFAULT) -> TimeExpression | None:
    """Return the day that a question asks about; None if it states no day, or more than one."""
    text = question[:LONGEST]
    times = _times(text, today, codes)
    if not times:
        return None
    time = times[0]
    words = text[time.start : time.end]
    firm = time.firm or time.period.relative
    return TimeExpression(time.day(today), words, time.start, time.end, firm)


def without_time(question: str, today: date, codes: Codes = DEFAULT) -> str:
    """Return a question on one line without the words that `read_time` reads."""
    text = question
    for time in reversed(_times(question[:LONGEST], today, codes)):
        text = f"{text[: time.start]} {text[time.end :]}"
    return " ".join(_EMPTY.sub(" ", text).split()).strip(" ,") if text != question else text


_OPENING = re.compile(r"‘(?=\d\d(?!\d))")
"""An opening quotation mark as the apostrophe of a year: ‘19년."""

_EMPTY = re.compile(r"\(\s*\)")


_Bound = Literal["at", "before", "since"]


@dataclass(frozen=True)
class _StatedTime:
    """A period and its bound: in the period, before it, or since its start.

    `firm` is true if the words can only mean the state at a time.
    """

    period: Period
    start: int
    end: int
    bound: _Bound
    firm: bool

    def day(self, today: date) -> date:
        period = self.period
        if self.bound == "before":
            return period.first - timedelta(days=1)
        if self.bound == "since":
            return max(period.first, today)
        return today if period.first <= today <= period.last else period.last


def _times(text: str, today: date, codes: Codes) -> list[_StatedTime]:
    """Return the times of the day that a text asks about; empty if there are more days, or none."""
    text = _OPENING.sub("'", text)
    cues = _cues(codes)
    stated = list(_stated(text, _ranges(text, periods(text, today, codes), codes), cues))
    chosen = [time for time in stated if time.firm] or stated
    compares = any(cue.compares.search(text) for cue in cues)
    return chosen if not compares and len({time.day(today) for time in chosen}) == 1 else []


def _cues(codes: Codes) -> tuple[TimeCues, ...]:
    return tuple(language.time_cues for language in languages(codes))


@cache
def _between(codes: Codes) -> re.Pattern[str]:
    """Return the pattern of the text between the two ends of a range."""
    words = [word for cue in _cues(codes) for word in cue.between]
    return re.compile(rf"\s?(?:{'|'.join(('[-–~]', *words))})\s?", re.I)


def _ranges(text: str, ends: Sequence[Period], codes: Codes) -> Iterator[Period]:
    """Replace the two ends of a range by one period: the later end, with the span of both."""
    between = _between(codes)
    begun: Period | None = None
    for period in ends:
        if begun and between.fullmatch(text[begun.end : period.start]):
            begun = replace(
                period, start=begun.start, ambiguous=begun.ambiguous and period.ambiguous
            )
            continue
        if begun:
            yield begun
        begun = period
    if begun:
        yield begun


def _stated(
    text: str, named: Iterator[Period], all_cues: Sequence[TimeCues]
) -> Iterator[_StatedTime]:
    """Read the words around each period.

    Numbers, names and times that describe the subject are left out.
    """
    read = 0
    for period in named:
        ahead = _first(cue.ahead.search(text, 0, period.start) for cue in all_cues)
        behind = _first(cue.behind.match(text, period.end) for cue in all_cues)
        start = ahead.start() if ahead else period.start
        end = behind.end() if behind else period.end
        cues = {name for cue in (ahead, behind) if cue for name in _groups(cue)}
        if period.start < read:
            continue
        if period.ambiguous and not _is_year(ahead, cues, text[end:], all_cues):
            continue
        of_subject = any(
            cue.of_subject_ahead.search(text, 0, start) or cue.of_subject_behind.match(text, end)
            for cue in all_cues
        )
        if of_subject and "firm" not in cues:
            continue
        if not ahead and any(cue.names.search(text, 0, start) for cue in all_cues):
            continue
        read = end
        bound: _Bound = "before" if "before" in cues else "since" if "since" in cues else "at"
        yield _StatedTime(period, start, end, bound, "firm" in cues)


def _first(matches: Iterable[re.Match[str] | None]) -> re.Match[str] | None:
    return next((match for match in matches if match), None)


def _groups(cue: re.Match[str]) -> list[str]:
    return [name for name, words in cue.groupdict().items() if words]


def _is_year(
    ahead: re.Match[str] | None, cues: set[str], behind: str, all_cues: Sequence[TimeCues]
) -> bool:
    """Whether digits are a year: `in 2010`, but not `in the 2010 drought` or `in 2010 cases`."""
    if any(cue.counted.match(behind) for cue in all_cues):
        return False
    articles = tuple(article for cue in all_cues for article in cue.articles)
    if ahead and ahead[0].lower().endswith(articles):
        return False
    return ahead is not None or "firm" in cues
