"""The nearest rows that pass a filter, which the keyword index says of each."""

from collections.abc import Sequence

from stores.chroma.metadata import CHUNK_ID
from stores.chroma.table import IDS_PER_CALL, Table, batches
from stores.filters import Where
from stores.keyword_index import KeywordIndex
from stores.records import LegHit, Vector
from stores.ties import ranked

_SPARE = 1.25
"""More than are needed on average, so that one question is enough as a rule."""

_MORE = 4


def nearest_passing(
    table: Table, keywords: KeywordIndex, vector: Vector, count: int, where: Where
) -> Sequence[LegHit]:
    """The `count` nearest rows that pass, best first.

    As many rows are asked for as hold `count` that pass, and more until they do. Where fewer pass
    than that, they are asked for by id. At 100,000 chunks 30 to 350 ms, whatever share passes.
    """
    passing = keywords.count(where)
    if not passing:
        return []
    wanted = int(_SPARE * count * keywords.count(None) / passing) + 1  # parents count there too
    if passing <= wanted:
        # Asked by `ids`, Chroma fails over one that it does not have.
        listed = batches(keywords.ids(where), IDS_PER_CALL)
        found = (table.nearest(vector, count, {CHUNK_ID: {"$in": some}}) for some in listed)
        return ranked(hit for hits in found for hit in hits)[:count]
    while True:
        hits = table.nearest(vector, wanted)
        kept = keywords.ids_among([hit.chunk_id for hit in hits], where)
        good = [hit for hit in hits if hit.chunk_id in kept]
        if len(good) >= count or len(hits) < wanted:
            return good[:count]
        wanted *= _MORE
