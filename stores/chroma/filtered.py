"""The nearest rows that pass a filter, which the keyword index evaluates."""

from collections.abc import Sequence

from callslip.errors import KeywordsDown
from callslip.stores.chroma.metadata import CHUNK_ID, stored_chunk
from callslip.stores.chroma.table import IDS_PER_CALL, Row, Table, batches
from callslip.stores.fulltext.contract import Keywords
from callslip.stores.properties.filters import Where, matches
from callslip.stores.records import RetrieverHit, Vector, visible
from callslip.stores.ties import ranked

_SPARE = 1.25
"""More rows than are needed on average, so that one query is usually enough."""

_MORE = 4

MOST_READ = 2000
"""The most rows whose properties are read while the keyword index is down: Chroma takes .05 s for
300 rows."""


def nearest_passing(
    table: Table, keywords: Keywords, vector: Vector, count: int, where: Where
) -> Sequence[RetrieverHit]:
    """The `count` nearest rows that pass, best first.

    While the keyword index is down, the properties of the nearest rows are read from Chroma. Raises
    KeywordsDown if more than MOST_READ rows would have to be read.
    """
    try:
        return _by_index(table, keywords, vector, count, where)
    except KeywordsDown:
        hits = _by_reading(table, vector, count, where)
        if hits is None:
            raise
        return hits


def _by_reading(
    table: Table, vector: Vector, count: int, where: Where
) -> Sequence[RetrieverHit] | None:
    wanted = min(_MORE * count, MOST_READ)
    while True:
        hits = table.nearest(vector, wanted)
        rows = table.get([hit.chunk_id for hit in hits])
        passing = {row.id for row in rows if matches(where, _seen(row))}
        good = [hit for hit in hits if hit.chunk_id in passing]
        if len(good) >= count or len(hits) < wanted:
            return good[:count]
        if wanted == MOST_READ:
            return None
        wanted = min(_MORE * wanted, MOST_READ)


def _seen(row: Row) -> dict[str, object]:
    return visible(stored_chunk(row.id, row.text, row.metadata, vectors={}, terms=None))


def _by_index(
    table: Table, keywords: Keywords, vector: Vector, count: int, where: Where
) -> Sequence[RetrieverHit]:
    """The `count` nearest rows that pass, as the keyword index evaluates the filter.

    The first query requests somewhat more rows than contain `count` passing rows on average; each
    further query requests more until enough pass. If no more rows pass than the first query would
    request, the passing rows are requested by id. At 100,000 chunks this takes 30 to 350 ms for any
    share of passing rows.
    """
    passing = keywords.count(where)
    if not passing:
        return []
    wanted = int(_SPARE * count * keywords.count(None) / passing) + 1  # counts parents too
    if passing <= wanted:
        # With the argument `ids`, Chroma fails if one of them does not exist.
        listed = batches(keywords.ids(where), IDS_PER_CALL)
        nearest = (table.nearest(vector, count, {CHUNK_ID: {"$in": some}}) for some in listed)
        return ranked(hit for hits in nearest for hit in hits)[:count]
    while True:
        hits = table.nearest(vector, wanted)
        passing_ids = keywords.ids_among([hit.chunk_id for hit in hits], where)
        good = [hit for hit in hits if hit.chunk_id in passing_ids]
        if len(good) >= count or len(hits) < wanted:
            return good[:count]
        wanted *= _MORE
