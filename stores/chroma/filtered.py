"""The nearest rows that pass a filter, which the keyword index evaluates."""

from collections.abc import Sequence

from callslip.stores.chroma.metadata import CHUNK_ID
from callslip.stores.chroma.table import IDS_PER_CALL, Table, batches
from callslip.stores.fulltext.index import KeywordIndex
from callslip.stores.properties.filters import Where
from callslip.stores.records import RetrieverHit, Vector
from callslip.stores.ties import ranked

_SPARE = 1.25
"""More rows than are needed on average, so that one query is usually enough."""

_MORE = 4


def nearest_passing(
    table: Table, keywords: KeywordIndex, vector: Vector, count: int, where: Where
) -> Sequence[RetrieverHit]:
    """The `count` nearest rows that pass, best first.

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
