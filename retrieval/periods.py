"""Periods as questions name them in English and Korean, of the calendar or counted from today."""

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta

from models.entities.dates import MONTH, days, month_number


@dataclass(frozen=True)
class Period:
    """Days from the first to the last, and where the words that name them stand.

    `bare` where they are digits that can be something else, `relative` where they count from today.
    """

    first: date
    last: date
    start: int
    end: int
    bare: bool = False
    relative: bool = False


def periods(text: str, today: date) -> list[Period]:
    """Every period that a text names, in order, none over another.

    Years before 1900 are history, and what no calendar has is none.
    """
    found: list[Period] = []
    relative = (
        replace(period, relative=True) for period in (*_counted(text, today), *_said(text, today))
    )
    for period in (*_days(text), *_calendar(text), *relative):
        if all(period.end <= other.start or other.end <= period.start for other in found):
            found.append(period)
    return sorted(found, key=lambda period: period.start)


# Of the calendar

_YEAR = r"(?P<year>(?:19|20)\d\d)"
_BEGIN, _END = r"(?<![\w.,:/$€£₩#'’-])", r"(?![\w%:/]|[.,]\d|[-–](?:\d{1,3}(?!\d)|[^\W\d])|['’]s)"
_NO_YEAR = r"(?!생|산|형|식|차|대|간|여|물|도?\s?(?:동안|예산|결산|회계))"
_CALENDAR = tuple(
    re.compile(form, re.I)
    for form in (
        rf"(?<![\w.,제~-])(?:{_YEAR}|['’](?P<short>\d\d))\s?년(?:\s?(?P<month_no>1[0-2]|0?[1-9])\s?월"
        rf"|{_NO_YEAR}도?(?:\s?(?P<half>[상하])반기|\s?(?P<quarter>[1-4])(?:/4)?\s?분기"
        r"|\s?연?(?P<edge>초|말)(?![가-힣]{2}))?)",
        rf"{_BEGIN}{MONTH},?\s(?:of\s)?{_YEAR}{_END}",
        rf"{_BEGIN}(?:q(?P<quarter>[1-4])|h(?P<half>[12])|(?:the\s)?(?P<half_name>first|second)\shalf\sof"
        rf"|(?:the\s)?(?P<quarter_name>first|second|third|fourth)\squarter\sof)\s{_YEAR}{_END}",
        rf"{_BEGIN}(?P<edge>early|late|(?:the\s)?(?:end|beginning|start)\sof)\s{_YEAR}{_END}",
        rf"{_BEGIN}(?P<bare>){_YEAR}[-./](?P<month_no>1[0-2]|0?[1-9])(?:\.(?!\d))?(?![\w/-]|\.\d)",
        rf"{_BEGIN}(?P<bare>){_YEAR}{_END}",
        rf"(?P<bare>)(?<=\d[-–]){_YEAR}{_END}",
    )
)
_DOTTED = re.compile(r"\d\.(?=\s?[가-힣])")
"""The full stop of `2020. 3. 1. 기준`, which is part of the date."""
_NTH = ("first", "second", "third", "fourth")


def _days(text: str) -> Iterator[Period]:
    for found in days(text):
        if found.day.year >= 1900:
            end = found.end + bool(_DOTTED.match(text, found.end - 1))
            yield Period(found.day, found.day, found.start, end)


def _calendar(text: str) -> Iterator[Period]:
    for form in _CALENDAR:
        for match in form.finditer(text):
            said = {name: value for name, value in match.groupdict().items() if value is not None}
            year = int(said["year"]) if "year" in said else 2000 + int(said["short"])
            first, last = _months(said)
            yield _of_months(year, first, last, match, bare="bare" in said)


def _months(said: dict[str, str]) -> tuple[int, int]:
    """The first and the last month of the part of a year that is named."""
    if month := said.get("month_no"):
        return int(month), int(month)
    if "month" in said:
        return month_number(said["month"]), month_number(said["month"])
    if quarter := said.get("quarter"):
        return 3 * int(quarter) - 2, 3 * int(quarter)
    if name := said.get("quarter_name"):
        nth = _NTH.index(name.lower())
        return 3 * nth + 1, 3 * nth + 3
    if half := said.get("half") or said.get("half_name", "").lower():
        return (1, 6) if half in ("상", "1", "first") else (7, 12)
    early = ("초", "early", "beginning", "start")
    return (
        (1, 3) if said.get("edge", "").lower().removeprefix("the ").startswith(early) else (1, 12)
    )


def _of_months(
    year: int, first: int, last: int, match: re.Match[str], *, bare: bool = False
) -> Period:
    end = date(year, last, monthrange(year, last)[1])
    return Period(date(year, first, 1), end, *match.span(), bare)


# Counted from today

_NUMBERS = {"a": 1, "an": 1, "한": 1, "두": 2, "세": 3, "네": 4, "다섯": 5, "열": 10} | {
    word: n
    for n, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 1
    )
}
_COUNT = r"(?P<count>\d{1,2}|%s)"
_ENGLISH = _COUNT % "|".join(word for word in _NUMBERS if word.isascii())
_KOREAN = _COUNT % "|".join(word for word in _NUMBERS if not word.isascii())
_UNITS = {"년": "year", "해": "year", "개월": "month", "달": "month", "주": "week", "일": "day"}
_COUNTED = (
    re.compile(
        rf"(?<![\w-]){_ENGLISH}\s(?P<unit>year|month|week|day)s?\s(?:ago|back|earlier)\b", re.I
    ),
    # Behind a noun it is counted from that: 퇴직 3개월 전.
    re.compile(
        rf"(?:^\s*|(?:지금|현재)(?:으?로)?부터\s?|(?<=[?!.,]\s)){_KOREAN}\s?"
        rf"(?P<unit>{'|'.join(_UNITS)})\s?전(?!까지|부터|에?\s?(?:미리|신청|신고|통지|통보|예고|알|제출|해고))"
    ),
)
_WORDS = {
    **dict.fromkeys(("재작년",), ("year", -2)),
    **dict.fromkeys(("작년", "지난해", "전년도?", "지난 연도"), ("year", -1)),
    **dict.fromkeys(("올해", "금년도?", "이번 연도"), ("year", 0)),
    **dict.fromkeys(("내년", "다음 해"), ("year", 1)),
    **dict.fromkeys(("지난 ?분기", "직전 ?분기"), ("quarter", -1)),
    **dict.fromkeys(("이번 ?분기",), ("quarter", 0)),
    **dict.fromkeys(("지난 ?달", "저번 ?달", "전월"), ("month", -1)),
    **dict.fromkeys(("이번 ?달", "이달(?!의)", "금월"), ("month", 0)),
    **dict.fromkeys(("다음 ?달",), ("month", 1)),
    **dict.fromkeys(("지난 ?주", "저번 ?주"), ("week", -1)),
    **dict.fromkeys(("이번 ?주",), ("week", 0)),
    **dict.fromkeys(("그저께", "그제"), ("day", -2)),
    **dict.fromkeys(("어제",), ("day", -1)),
    **dict.fromkeys(("오늘날?", "현행", "현재", "지금", "요즘", "현시점"), ("day", 0)),
    **dict.fromkeys(("내일",), ("day", 1)),
}
_TAIL = (
    r"(?=(?:도|의|은|는|에|엔|에는|에도|까지(?:의|는)?|으?로|부터(?:의|는)?|기준|당시|시점|이전|이후|말|초|시행|유효|적용"
    r")(?![가-힣])|법령?|규정|[^\w]|$)"
)
_KOREAN_WORD = re.compile(
    rf"(?<!\w)(?:{'|'.join(f'(?P<w{n}>{word})' for n, word in enumerate(_WORDS))}){_TAIL}"
)
_ENGLISH_WORD = re.compile(
    r"\b(?:(?P<shift>last|previous|this|current|next)\s(?P<unit>year|quarter|month|week)(?!\s(?:of|in)\b)"
    r"|(?P<now>currently|nowadays|at\s(?:present|the\smoment)|right\snow|these\sdays|today|to\sdate"
    r"|(?<=as\sof\s)now|now(?=[?.!]?\s*$)|current(?=\s(?:law|rule|version|regulation|polic|text|standard"
    r"|provision|rate|guideline|edition|requirement)))|(?P<yesterday>yesterday)"
    r"|(?P<tomorrow>tomorrow))\b",
    re.I,
)
_SHIFTS = {"last": -1, "previous": -1, "this": 0, "current": 0, "next": 1}


def _counted(text: str, today: date) -> Iterator[Period]:
    """`two years ago`: that very day."""
    for form in _COUNTED:
        for match in form.finditer(text):
            count = match["count"].lower()
            back = int(count) if count.isdecimal() else _NUMBERS[count]
            unit = _UNITS.get(match["unit"], match["unit"].lower())
            day = _shifted(today, unit, -back)
            yield Period(day, day, *match.span())


def _said(text: str, today: date) -> Iterator[Period]:
    for match in _KOREAN_WORD.finditer(text):
        unit, shift = list(_WORDS.values())[int((match.lastgroup or "w0")[1:])]
        yield _around(_shifted(today, unit, shift), unit, match)
    for match in _ENGLISH_WORD.finditer(text):
        if match["shift"]:
            unit, shift = match["unit"].lower(), _SHIFTS[match["shift"].lower()]
        else:
            unit, shift = "day", -1 if match["yesterday"] else 1 if match["tomorrow"] else 0
        yield _around(_shifted(today, unit, shift), unit, match)


def _around(day: date, unit: str, match: re.Match[str]) -> Period:
    """The year, quarter, month, week or day that a day lies in."""
    if unit == "year":
        return _of_months(day.year, 1, 12, match)
    if unit == "quarter":
        first = day.month - (day.month - 1) % 3
        return _of_months(day.year, first, first + 2, match)
    if unit == "month":
        return _of_months(day.year, day.month, day.month, match)
    monday = day - timedelta(days=day.weekday()) if unit == "week" else day
    return Period(monday, monday + timedelta(days=6 * (unit == "week")), *match.span())


def _shifted(day: date, unit: str, count: int) -> date:
    """The same day so many units later, or the last one of a shorter month."""
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + count * {"year": 12, "quarter": 3, "month": 1}[unit]
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
