"""The validity filter: chunks that are in force at a moment, `valid_from <= as_of < valid_to`.

It is an ordinary filter, so every store applies it before it selects candidates. A chunk without a
date, or with a text that is not a date, passes.
"""

from collections.abc import Container
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

from callslip.retrieval.query.understand import Understood
from callslip.stores.properties.filters import Condition, Where, instant
from callslip.vocabulary import TimeSource

FROM, TO = "valid_from", "valid_to"


@dataclass(frozen=True)
class AsOf:
    """The moment at which hits must be in force (None for any time), and its source.

    `words` is the time expression of the question, if the moment comes from the question.
    """

    moment: datetime | None
    source: TimeSource
    words: str = ""


def validity_filter(where: Where | None, as_of: date | datetime) -> Where:
    """Narrow a filter to chunks in force at `as_of`; a date means its midnight in UTC."""
    if not isinstance(as_of, datetime):
        as_of = midnight(as_of)
    begun, not_over = Condition(FROM, "!>", as_of), Condition(TO, "!<=", as_of)
    where = where or Where()
    return Where((*where.every, begun, not_over), where.some)


def without_validity(where: Where | None, as_of: datetime) -> Where | None:
    """Return the filter without what `validity_filter` adds for `as_of`."""
    if where is None:
        return None
    added = validity_filter(None, as_of).every
    return Where(tuple(c for c in where.every if c not in added), where.some)


def filter_known_validity(where: Where | None, as_of: AsOf, known: Container[str]) -> Where | None:
    """Add the validity filter if a chunk of the collection ever had a validity date.

    Otherwise, or if `as_of` means any time, return the filter unchanged.
    """
    if as_of.moment is None or not (FROM in known or TO in known):
        return where
    return validity_filter(where, as_of.moment)


def choose(
    requested: str | None,
    understood: Understood | None,
    default: Literal["now", "any"],
    now: datetime,
) -> AsOf:
    """Return the moment of the request, else of the question, else of the default.

    `requested` is `now`, `any`, an ISO 8601 date or datetime, or None. `understood` is None if the
    request has no question in words. `now` has a UTC offset.
    """
    if requested:
        return AsOf(_moment(requested, now), "given")
    if understood is not None and (day := understood.as_of) is not None:
        moment = present(now) if day == now.date() else midnight(day)
        return AsOf(moment, "understood", understood.time_words)
    return AsOf(_moment(default, now), "default")


def present(now: datetime) -> datetime:
    """Return the moment that `now` means in filters: the end of the current minute in UTC.

    The minute makes a repeated question cacheable. The moment is never before the local day's
    midnight in UTC, so that a version that takes effect today counts from local midnight: in Seoul,
    midnight in UTC comes hours after local midnight.
    """
    minute = now.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
    return max(minute, midnight(now.date()))


def midnight(day: date) -> datetime:
    """Return the moment that a date means in filters: its midnight in UTC."""
    return datetime.combine(day, time(), UTC)


def _moment(text: str, now: datetime) -> datetime | None:
    return present(now) if text == "now" else None if text == "any" else instant(text)
