"""From when to when a text says that it holds: 시행일, "effective from", "in force until".

`valid_to` is the first day on which it no longer holds, so that `valid_from <= day < valid_to`.
"in force until 31 December 2025" therefore gives 2026-01-01, "repealed on 1 May 2020" that day.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from models.entities.dates import Day, days

HEAD = 3000
"""Characters at the beginning of a document in which a date is the whole document's."""

Cue = Literal["from", "revised", "through", "end"]

_REACH_BEFORE, _REACH_AFTER = 60, 24
"""Characters around a date in which its cue stands."""

_ON = (
    r"(?:\s(?:date|day))?\s?"
    r"(?:\sis|\sas\sof|\sfrom|\son|\ssince|\swith\seffect\sfrom|\sbeginning|\sstarting)*"
    r"\s*[:：|]*\s*(?:the\s)?"
)
_IS = r"\s*[:：|은는]?\s*"


def _cues(side: str, *forms: tuple[Cue, str]) -> tuple[tuple[Cue, re.Pattern[str]], ...]:
    return tuple((cue, re.compile(side.format(form), re.I)) for cue, form in forms)


_BEFORE = _cues(
    r"(?:{})\Z",
    ("end", rf"(?:repealed|revoked|rescinded|withdrawn|superseded|cease[sd]?\sto\sapply){_ON}"),
    ("end", rf"ceased?s?\sto\s(?:have\seffect|be\sin\sforce){_ON}"),
    ("end", rf"(?:폐지일자?|실효일){_IS}"),
    (
        "through",
        r"(?:in\s(?:force|effect)|valid|effective|applicable|appl(?:y|ies)|runs)\s(?:only\s)?"
        r"(?:until|till|through|up\sto)(?:\sand\sincluding)?\s*[:：|]?\s*(?:the\s)?",
    ),
    ("through", r"expir(?:es|y|ation)(?:\sdate)?(?:\son)?\s*[:：|]?\s*"),
    ("through", rf"(?:만료일자?|종료일자?|유효\s?기한){_IS}"),
    (
        "from",
        r"(?:\beffective|\bin\s(?:force|effect)|\bapplicable|\bvalid|\bappl(?:y|ies)|with\seffect"
        r"|t(?:akes?|ook)\seffect|(?:comes?|came|enters?|entered)\sin(?:to)?\s"
        rf"(?:force|effect|operation)){_ON}",
    ),
    ("from", rf"(?:시행|발효|적용|효력\s?발생)\s*(?:일자|일)?\)?{_IS}"),
    ("from", rf"유효\s?기간{_IS}"),
    ("revised", r"(?:revised|amended|updated)(?:\son)?\s*[:：|]?\s*"),
    ("revised", rf"(?:개정|제정)\s*(?:일자|일)?{_IS}"),
)
_AFTER = _cues(
    r"\.?\s*(?:{})",
    ("end", r"(?:부로\s*|자로\s*|에\s*)?(?:폐지|실효)"),
    ("through", r"까지\s*(?:시행|유효|효력|적용|한다|로\s?한다)"),
    ("from", r"(?:부터|자로|부로|에)?\s*(?:시행|발효|적용)(?!\s*(?:중지|유예))"),
    ("revised", r",?\s*(?:일부|전부|타법)?\s*(?:개정|제정)"),
)
_RANGE = re.compile(
    r"\.?\s*(?:부터|to|until|till|through|[-~–—∼])\s*(?:and\sincluding\s)?(?:the\s)?", re.I
)
_KEYS: dict[Cue, tuple[str, ...]] = {
    "from": (
        *("valid_from", "effective", "effective_date", "effective_from"),
        *("시행일", "시행일자"),
    ),
    "revised": ("revised", "last_revised", "개정일", "개정일자"),
    "end": ("valid_to", "repealed", "폐지일"),
    "through": ("valid_until", "in_force_until", "expires", "expiry_date", "만료일"),
}


@dataclass(frozen=True)
class Validity:
    """From a day on, up to a day that does not count; None where nothing says so."""

    begins: date | None = None
    ends: date | None = None

    @property
    def contradictory(self) -> bool:
        """It would end before it begins."""
        return self.begins is not None and self.ends is not None and self.ends < self.begins

    def properties(self) -> dict[str, str]:
        """As filters see it."""
        given = {"valid_from": self.begins, "valid_to": self.ends}
        return {name: day.isoformat() for name, day in given.items() if day}


def of_document(text: str, properties: Mapping[str, object]) -> Validity:
    """What a document's own properties say, else its head, else its whole text where it is clear.

    A day of revision counts where none of taking effect is named.
    """
    named = _of_properties(properties)
    head = _first(_cued(text[:HEAD]))
    rest = Validity() if head.begins or head.ends else _only(_cued(text))
    return Validity(
        named.begins or head.begins or rest.begins, named.ends or head.ends or rest.ends
    )


def of_chunk(text: str) -> Validity:
    """What a passage says of itself; of several days that contradict each other, none."""
    return _only((cue, day) for cue, day in _cued(text) if cue != "revised")


def _of_properties(properties: Mapping[str, object]) -> Validity:
    found: list[tuple[Cue, date]] = []
    for name, value in properties.items():
        plain = name.strip().lower().replace("-", "_").replace(" ", "_")
        day = next(days(str(value)), None)
        found += [
            (cue, _counted(cue, day.day)) for cue, keys in _KEYS.items() if day and plain in keys
        ]
    return _first(found)


def _cued(text: str) -> Iterator[tuple[Cue, date]]:
    """Days with what stands around them, in order."""
    before: tuple[Day, Cue | None] | None = None
    for day in days(text):
        cue = _cue(text, day, before)
        if cue:
            yield cue, _counted(cue, day.day)
        before = day, cue


def _cue(text: str, day: Day, before: tuple[Day, Cue | None] | None) -> Cue | None:
    if before and before[1] == "from" and _RANGE.fullmatch(text, before[0].end, day.start):
        return "through"
    lead = text[max(0, day.start - _REACH_BEFORE) : day.start]
    trail = text[day.end : day.end + _REACH_AFTER]
    for cue, pattern in _BEFORE:
        if pattern.search(lead):
            return cue
    return next((cue for cue, pattern in _AFTER if pattern.match(trail)), None)


def _counted(cue: Cue, day: date) -> date:
    """The day that is kept: of the last day that counts the one after."""
    return day + timedelta(days=1) if cue == "through" and day < date.max else day


def _first(found: Iterable[tuple[Cue, date]]) -> Validity:
    first: dict[Cue, date] = {}
    for cue, day in found:
        first.setdefault(cue, day)
    return Validity(
        first.get("from") or first.get("revised"), first.get("end") or first.get("through")
    )


def _only(found: Iterable[tuple[Cue, date]]) -> Validity:
    days_of: dict[str, set[date]] = {"from": set(), "to": set()}
    for cue, day in found:
        if cue != "revised":
            days_of["from" if cue == "from" else "to"].add(day)
    begins, ends = (d.pop() if len(d) == 1 else None for d in days_of.values())
    return Validity(begins, ends)
