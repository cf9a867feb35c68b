"""Finds the dates of validity that a text states: 시행일, "effective from", "in force until".

`valid_to` is the first day on which the text is no longer valid: `valid_from <= day < valid_to`.
"in force until 31 December 2025" therefore gives 2026-01-01, "repealed on 1 May 2020" that day.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache

from callslip.languages import DEFAULT, Codes, languages
from callslip.languages.contract import Cue, ValidityCues
from callslip.models.entities.dates import Day, days
from callslip.stores.properties.filters import instant
from callslip.stores.records import ChunkRecord, DocumentRecord, Properties

HEAD = 3000
"""The number of characters at the beginning of a document in which a date applies to the whole
document."""

_REACH_BEFORE, _REACH_AFTER = 60, 24
"""The numbers of characters before and after a date that are searched for its cue."""

_ORDER: tuple[Cue, ...] = ("end", "through", "from", "revised")
"""If a date has several cues on one side, the first one in this order counts."""


class _Patterns:
    """The cues of several languages together."""

    def __init__(self, each: Sequence[ValidityCues]) -> None:
        self.before = [
            (cue, re.compile(rf"(?:{form})\Z", re.I))
            for cue in _ORDER
            for cues in each
            for form in cues.before.get(cue, ())
        ]
        self.after = [
            (cue, re.compile(rf"\.?\s*(?:{form})", re.I))
            for cue in _ORDER
            for cues in each
            for form in cues.after.get(cue, ())
        ]
        words = "|".join((*(word for cues in each for word in cues.range_words), "[-~–—∼]"))
        tails = "".join(cues.range_tail for cues in each)
        self.range = re.compile(rf"\.?\s*(?:{words})\s*{tails}", re.I)
        self.keys: dict[Cue, tuple[str, ...]] = {
            cue: tuple(key for cues in each for key in cues.keys.get(cue, ()))
            for cue in ("from", "revised", "end", "through")
        }


@cache
def _patterns(codes: Codes) -> _Patterns:
    return _Patterns([language.validity for language in languages(codes)])


@dataclass(frozen=True)
class Validity:
    """The first day of validity and the first day after it; None if the text states none."""

    begins: date | None = None
    ends: date | None = None

    @property
    def contradictory(self) -> bool:
        """Whether the validity ends before it begins."""
        return self.begins is not None and self.ends is not None and self.ends < self.begins

    def properties(self) -> dict[str, str]:
        """The validity as properties for filters."""
        bounds = {"valid_from": self.begins, "valid_to": self.ends}
        return {name: day.isoformat() for name, day in bounds.items() if day}


def of_document(text: str, properties: Mapping[str, object], codes: Codes = DEFAULT) -> Validity:
    """Return the validity by the properties, else by the head, else by dates unique in the text.

    A date of revision counts only if no effective date is stated.
    """
    named = _of_properties(properties, codes)
    head = _first(_cued(text[:HEAD], codes))
    rest = Validity() if head.begins or head.ends else _only(_cued(text, codes))
    return Validity(
        named.begins or head.begins or rest.begins, named.ends or head.ends or rest.ends
    )


def of_chunk(text: str, codes: Codes = DEFAULT) -> Validity:
    """Return the validity that a passage states; a bound with different dates is left empty."""
    return _only((cue, day) for cue, day in _cued(text, codes) if cue != "revised")


def in_force_since(
    created_at: float, document: DocumentRecord, chunks: Sequence[ChunkRecord]
) -> tuple[DocumentRecord, list[ChunkRecord]]:
    """Return both with `valid_from` on the day of `created_at`, in UTC, where none is stated.

    `created_at` is in seconds since 1970. What is over by that day has no first day.
    """
    day = datetime.fromtimestamp(created_at, UTC).date().isoformat()

    def since(properties: Properties) -> Properties:
        ends = instant(str(properties.get("valid_to", "")))
        over = ends is not None and ends <= datetime.fromtimestamp(created_at, UTC)
        stated = over or "valid_from" in properties
        return properties if stated else {**properties, "valid_from": day}

    return (
        replace(document, properties=since(document.properties)),
        [replace(chunk, properties=since(chunk.properties)) for chunk in chunks],
    )


def _of_properties(properties: Mapping[str, object], codes: Codes) -> Validity:
    dated: list[tuple[Cue, date]] = []
    for name, value in properties.items():
        plain = name.strip().lower().replace("-", "_").replace(" ", "_")
        day = next(days(str(value), codes), None)
        dated += [
            (cue, _counted(cue, day.day))
            for cue, keys in _patterns(codes).keys.items()
            if day and plain in keys
        ]
    return _first(dated)


def _cued(text: str, codes: Codes) -> Iterator[tuple[Cue, date]]:
    """Yield the dates that have a cue next to them, with this cue, in order."""
    before: tuple[Day, Cue | None] | None = None
    for day in days(text, codes):
        cue = _cue(text, day, before, _patterns(codes))
        if cue:
            yield cue, _counted(cue, day.day)
        before = day, cue


def _cue(
    text: str, day: Day, before: tuple[Day, Cue | None] | None, patterns: _Patterns
) -> Cue | None:
    if before and before[1] == "from" and patterns.range.fullmatch(text, before[0].end, day.start):
        return "through"
    lead = text[max(0, day.start - _REACH_BEFORE) : day.start]
    trail = text[day.end : day.end + _REACH_AFTER]
    for cue, pattern in patterns.before:
        if pattern.search(lead):
            return cue
    return next((cue for cue, pattern in patterns.after if pattern.match(trail)), None)


def _counted(cue: Cue, day: date) -> date:
    """Return the date to store; for a last day of validity, the next day."""
    return day + timedelta(days=1) if cue == "through" and day < date.max else day


def _first(dated: Iterable[tuple[Cue, date]]) -> Validity:
    first: dict[Cue, date] = {}
    for cue, day in dated:
        first.setdefault(cue, day)
    return Validity(
        first.get("from") or first.get("revised"), first.get("end") or first.get("through")
    )


def _only(dated: Iterable[tuple[Cue, date]]) -> Validity:
    days_of: dict[str, set[date]] = {"from": set(), "to": set()}
    for cue, day in dated:
        if cue != "revised":
            days_of["from" if cue == "from" else "to"].add(day)
    begins, ends = (d.pop() if len(d) == 1 else None for d in days_of.values())
    return Validity(begins, ends)
