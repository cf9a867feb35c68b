"""The clamp of a search to what is in force at a moment: `valid_from <= as_of < valid_to`.

It is a filter like any other, so that every store applies it before it takes its candidates. A
chunk without a date, or with a text that is none, passes.
"""

from collections.abc import Container
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

from retrieval.understand import time_asked
from stores.filters import Condition, Where, instant

FROM, TO = "valid_from", "valid_to"

Source = Literal["given", "understood", "default"]


@dataclass(frozen=True)
class AsOf:
    """The moment that hits are in force at, None for any time, and where it comes from.

    `words` are those of the question that it was understood from.
    """

    moment: datetime | None
    source: Source
    words: str = ""


def clamp(where: Where | None, as_of: date | datetime) -> Where:
    """Narrow a filter to what is in force; a date is its midnight, UTC, as it is in filters."""
    if not isinstance(as_of, datetime):
        as_of = midnight(as_of)
    begun, not_over = Condition(FROM, "!>", as_of), Condition(TO, "!<=", as_of)
    where = where or Where()
    return Where((*where.every, begun, not_over), where.some)


def clamp_known(where: Where | None, as_of: AsOf, known: Container[str]) -> Where | None:
    """The same where a chunk of the collection ever had such a date, else the filter as it is."""
    if as_of.moment is None or not (FROM in known or TO in known):
        return where
    return clamp(where, as_of.moment)


def choose(given: str | None, query: str, default: Literal["now", "any"], now: datetime) -> AsOf:
    """What the request gives, else what the question says, else the default.

    `given` is `now`, `any`, an ISO 8601 date or datetime, or nothing. `now` has an offset.
    """
    if given:
        return AsOf(_moment(given, now), "given")
    if told := time_asked(query, now.date()):
        moment = present(now) if told.day == now.date() else midnight(told.day)
        return AsOf(moment, "understood", told.words)
    return AsOf(_moment(default, now), "default")


def present(now: datetime) -> datetime:
    """The moment that `now` means: where a day has begun, what begins with this day has begun.

    Days are compared by their midnight in UTC, which comes hours later in Seoul. It is the end of
    the minute, so that a question that is repeated is the same.
    """
    minute = now.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
    return max(minute, midnight(now.date()))


def midnight(day: date) -> datetime:
    """The moment that a date is in filters."""
    return datetime.combine(day, time(), UTC)


def _moment(text: str, now: datetime) -> datetime | None:
    return present(now) if text == "now" else None if text == "any" else instant(text)
