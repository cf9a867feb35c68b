"""Reads all matching objects of a class, in as many requests as the server's limits need."""

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from itertools import pairwise
from typing import Any
from uuid import UUID

from weaviate.classes.aggregate import GroupByAggregate, Metrics
from weaviate.classes.query import Filter
from weaviate.collections.classes.aggregate import AggregateNumber
from weaviate.collections.classes.filters import FilterReturn

from callslip.stores.properties.terms import FLAG, NUMBER, TEXT
from callslip.stores.records import RetrieverHit, Scalar
from callslip.stores.ties import best, ranked
from callslip.stores.weaviate.connection import At, TooLarge
from callslip.stores.weaviate.names import uuid_of
from callslip.stores.weaviate.values import property_at, read

MOST_RESULTS = 10_000
"""The most hits of one query: the default of Weaviate's QUERY_MAXIMUM_RESULTS.

A query without a limit returns 10 hits.
"""

MOST_GROUPS = 1_000_000
"""The most values of a property that are counted separately."""

PAGE = 5000
OBJECTS_PER_CALL = 500

_FIRST = UUID(int=0)
_UUIDS = 2**32
"""The number of prefixes of UUIDs: the first eight hexadecimal digits."""


def values(at: At, prop: str, where: FilterReturn | None = None) -> list[str]:
    """The values of a text property of all objects that match, in undefined order."""
    results = list(_all(at, prop)) if where is None else _matching(at, prop, where)
    return [str(value) for value in results]


def count(at: At, where: FilterReturn | None = None) -> int:
    """The number of objects that match."""
    return at.aggregate.over_all(total_count=True, filters=where).total_count or 0


def objects(
    at: At, uuids: Sequence[UUID], properties: Sequence[str], *, vectors: bool = False
) -> dict[UUID, Any]:
    """The objects with these ids, by id. Ignores unknown ids."""
    unique = list(dict.fromkeys(uuids))
    if len(unique) > OBJECTS_PER_CALL:
        parts = (unique[i : i + OBJECTS_PER_CALL] for i in range(0, len(unique), OBJECTS_PER_CALL))
        results_in = (objects(at, part, properties, vectors=vectors) for part in parts)
        return {uuid: each for results in results_in for uuid, each in results.items()}
    if not unique:
        return {}
    try:
        results = at.query.fetch_objects_by_ids(
            unique,
            limit=len(unique),
            return_properties=list(properties),
            include_vector=vectors,
        )
    except TooLarge:
        middle = len(unique) // 2
        return {
            **objects(at, unique[:middle], properties, vectors=vectors),
            **objects(at, unique[middle:], properties, vectors=vectors),
        }
    return {each.uuid: each for each in results.objects}


def groups(
    at: At, prop: str, known: Container[str], where: FilterReturn | None
) -> list[tuple[Scalar, int]]:
    """The number of objects for each value of a property, most frequent first, then by value.

    `known` are the Weaviate properties of the class.
    """
    results: Counter[tuple[str, Scalar]] = Counter()
    for kind in (TEXT, NUMBER, FLAG):
        for mark in (kind, kind.upper()):
            name = property_at(mark, prop)
            if name not in known:
                continue
            by = GroupByAggregate(prop=name, limit=MOST_GROUPS)
            got = at.aggregate.over_all(group_by=by, total_count=True, filters=where)
            for group in got.groups:
                results[kind, read(mark, group.grouped_by.value)] += group.total_count or 0
    ordered = sorted(results.items(), key=lambda group: (-group[1], group[0]))
    return [(value, count) for (_, value), count in ordered]


def greatest(at: At, prop: str) -> int | None:
    """The greatest value of a property of whole numbers; None if no object has the property."""
    got = at.aggregate.over_all(return_metrics=Metrics(prop).number(maximum=True), total_count=True)
    results = got.properties[prop] if got.total_count else None
    return (
        int(results.maximum)
        if isinstance(results, AggregateNumber) and results.maximum is not None
        else None
    )


def best_of(
    at: At,
    where: FilterReturn | None,
    limit: int,
    ask: Callable[[FilterReturn | None, int], list[RetrieverHit]],
) -> list[RetrieverHit]:
    """The best hits of one retriever, ties broken by chunk id, also more than one query returns.

    `ask(where, n)` returns the n best. For more than MOST_RESULTS hits, `ask` is called for one
    slice of the matching ids after the other: no filter changes a score.
    """

    def fetch(wanted: int) -> list[RetrieverHit]:
        results = ask(where, min(wanted, MOST_RESULTS))
        if wanted <= MOST_RESULTS or len(results) < MOST_RESULTS:
            return results
        hits: list[RetrieverHit] = []
        matching = values(at, "chunk_id", where)
        for start in range(0, len(matching), PAGE):
            among = [uuid_of(chunk_id) for chunk_id in matching[start : start + PAGE]]
            hits += ask(Filter.by_id().contains_any(among), PAGE)
        return ranked(hits)[:wanted]

    return best(fetch, limit)


def _all(at: At, prop: str) -> Iterator[object]:
    after = _FIRST
    while True:
        page = at.query.fetch_objects(limit=PAGE, after=after, return_properties=[prop]).objects
        yield from (each.properties[prop] for each in page)
        if len(page) < PAGE:
            return
        after = page[-1].uuid


def _matching(at: At, prop: str, where: FilterReturn) -> list[object]:
    """The values of a property for the objects that match.

    Weaviate's cursor accepts no filter. If more than a page matches, the range of UUIDs, which are
    spread evenly, is read in windows.
    """
    page = _page(at, prop, where)
    if len(page) < PAGE:
        return page
    parts = 2 * count(at, where) // PAGE + 1
    bounds = [_UUIDS * i // parts for i in range(parts + 1)]
    return [
        value for low, high in pairwise(bounds) for value in _window(at, prop, where, low, high)
    ]


def _window(at: At, prop: str, where: FilterReturn, low: int, high: int) -> list[object]:
    by = Filter.by_property("_id")
    inside = [where, by.greater_or_equal(f"{low:08x}")]
    if high < _UUIDS:
        inside.append(by.less_than(f"{high:08x}"))
    page = _page(at, prop, Filter.all_of(inside))
    if len(page) < PAGE:
        return page
    middle = (low + high) // 2
    return [*_window(at, prop, where, low, middle), *_window(at, prop, where, middle, high)]


def _page(at: At, prop: str, where: FilterReturn) -> list[object]:
    results = at.query.fetch_objects(limit=PAGE, filters=where, return_properties=[prop])
    return [each.properties[prop] for each in results.objects]
