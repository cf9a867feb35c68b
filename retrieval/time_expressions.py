"""The time that a question asks about, in English and Korean: `as of 2019`, `2020년 3월 기준`.

Every form becomes one day, the last one of the period that it names, today where the period is not
over: what took effect during a year is in force at its end, and who asks about a year means the
state that it led to. `before 2015` is the day before; `since 2015` is today, or the period's first
day where that is yet to come, for it asks for what has held from then on; `from 2015 to 2018` is
the end of 2018. Two different times make no single day: such a question compares, and is left
alone.

A bare number is a year only beside a word such as `in`: `RFC 2019`, `Article 2020`, `제2019호` and
`2019 Novel` are names. A time that tells of the subject (`born in 1990`, `2015년 이후 입사자`), or
names a law or a ruling by its day, does not say which version is asked for.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Literal

from retrieval.periods import Period, periods

LONGEST = 2_000
"""Characters of a question that are looked through: what is longer is a text."""


@dataclass(frozen=True)
class TimeExpression:
    """A day, and the words that say it with their place in the question."""

    day: date
    words: str
    start: int
    end: int
    firm: bool
    """It can only mean the state of things then: `as of 2019`, `last year`; not `in 2019`."""


def read_time(question: str, today: date) -> TimeExpression | None:
    """The day that a question asks about; None where it names none, or more than one."""
    text = question[:LONGEST]
    found = list(_told(text, _ranges(text, periods(text, today))))
    chosen = [told for told in found if told.firm] or found
    if _COMPARES.search(text) or len({told.day(today) for told in chosen}) != 1:
        return None
    told = chosen[0]
    words = text[told.start : told.end]
    firm = told.firm or told.period.relative
    return TimeExpression(told.day(today), words, told.start, told.end, firm)


_Bound = Literal["at", "before", "since"]


@dataclass(frozen=True)
class _Told:
    """A period as it is told: in it, before it, or since it began.

    `firm` where the words can mean nothing but the state of things at a time.
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


_AHEAD = re.compile(
    r"\b(?:(?P<firm>as\s(?:of|at)|as\sit\s(?:stood|was)\s(?:in|on|at)|(?:in\s(?:force|effect)"
    r"|effective|valid|applicable|applied)(?:\s(?:in|on|at|as\sof|during))?|at\sthe\stime\sof)"
    r"|(?P<before>before|prior\sto|earlier\sthan)"
    r"|(?P<since>since|after|following|(?:starting|beginning)(?:\s(?:in|from|on))?)"
    r"|(?P<at>(?:back\s)?in|during|throughout|within|by|no\slater\sthan|until|till|up\sto|through"
    r"|around|on|from|for))\s(?:the\s)?(?P<year>(?:calendar\s)?year\s)?(?:mid[\s-])?$",
    re.I,
)
_BEHIND = re.compile(
    r"\s?(?P<firm>(?:시점\s?)?기준(?:으로|의)?|당시(?:에는|에|의)?|현재(?:의|는|로)?|시점(?:의|에서|에는|에)?"
    r"|(?:에\s)?(?:시행|유효|적용)(?:되던|되는|된|하던|하는|중인)?)(?![가-힣])"
    r"|(?P<before>\s?이전(?:에는|에|의)?|보다\s전에?|\s전(?:에는|에|의)?)(?![가-힣])"
    r"|(?P<since>\s?이후(?:에는|에|의|로)?|\s?이래로?|부터는?|\s후(?:에는|에|의)?"
    r"|\s(?:onwards?|on(?=\W?$)|(?:and|or)\slater))(?![\w])"
    r"|(?:\s?말)?(?:까지(?:는|의)?|에서|에는|에도|에|엔|의|은|는|\s중에?)(?![가-힣])"
)
_OF_SUBJECT_AHEAD = re.compile(
    r"\b(?:born|hired|join(?:ed|ing)|built|founded|established|registered|enrolled|employed|bought"
    r"|purchased|made|manufactured|signed|graduated|died|elected|created|formed|launched|started|began"
    r"|opened|happened|occurred|invented|discovered|won|married|moved|retired)\s$",
    re.I,
)
_OF_SUBJECT_BEHIND = re.compile(
    r"\s?(?:출생|입사|가입|취득|설립|등록|채용|임용|태어|준공|건축|계약|체결|제조|생산|졸업|입학|퇴직|사망|혼인"
    r"|분양|선고|신설|제정|개정|도입|발표|발행|출시|수립|자\s?판결|법률\s제|대통령령|부령|고시\s제|발생|개최)"
)
_NAMED = re.compile(
    r"\b(?:act|law|regulation|directive|decision|rule|agreement|treaty|convention|order|resolution)\sof\s$|\bversion\s$|(?:개정|신설|제정|공포)\s?$",
    re.I,
)
_COUNTED = re.compile(
    r"\s(?:words?|people|persons|patients|employees|countries|cases|units|dollars|won|euros|times"
    r"|years?|months?|days|hours|minutes|seconds|steps|lines|pages|characters|bytes|miles|met(?:er|re)s"
    r"|feet|km|kg|ms|BCE?|novel)\b",
    re.I,
)
_COMPARES = re.compile(r"(?:년도?|월|분기|달|해)\s?대비")
_TO = re.compile(r"\s?(?:[-–~]|to|until|till|through|부터|에서)\s?", re.I)


def _ranges(text: str, found: Sequence[Period]) -> Iterator[Period]:
    """Make one of the two ends of a range: the later one, with all its words."""
    begun: Period | None = None
    for period in found:
        if begun and _TO.fullmatch(text[begun.end : period.start]):
            begun = replace(period, start=begun.start, bare=begun.bare and period.bare)
            continue
        if begun:
            yield begun
        begun = period
    if begun:
        yield begun


def _told(text: str, found: Iterator[Period]) -> Iterator[_Told]:
    """Read the words around each; what is a number, a name or tells of the subject is left out."""
    read = 0
    for period in found:
        ahead = _AHEAD.search(text, 0, period.start)
        behind = _BEHIND.match(text, period.end)
        start = ahead.start() if ahead else period.start
        end = behind.end() if behind else period.end
        cues = {name for cue in (ahead, behind) if cue for name in _said(cue)}
        if period.start < read:
            continue
        if period.bare and not _is_year(ahead, cues, text[end:]):
            continue
        of_subject = _OF_SUBJECT_AHEAD.search(text, 0, start) or _OF_SUBJECT_BEHIND.match(text, end)
        if of_subject and "firm" not in cues:
            continue
        if not ahead and _NAMED.search(text, 0, start):
            continue
        read = end
        bound: _Bound = "before" if "before" in cues else "since" if "since" in cues else "at"
        yield _Told(period, start, end, bound, "firm" in cues)


def _said(cue: re.Match[str]) -> list[str]:
    return [name for name, words in cue.groupdict().items() if words]


def _is_year(ahead: re.Match[str] | None, cues: set[str], behind: str) -> bool:
    """Tell whether digits are a year: `in 2010`, not `in the 2010 drought` or `in 2010 cases`."""
    if _COUNTED.match(behind):
        return False
    if ahead and ahead[0].lower().endswith("the "):
        return False
    return ahead is not None or "firm" in cues
