"""Writing objects into a class and removing them, each result looked at."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from weaviate.classes.data import DataObject
from weaviate.collections.classes.filters import FilterReturn
from weaviate.exceptions import WeaviateInsertManyAllFailedError

from callslip.errors import StoreDown
from stores.batching import slices
from stores.records import ChunkRecord
from stores.weaviate.classes import OF_DOC, PARENT
from stores.weaviate.connection import At, TooLarge, is_read_only, read_only
from stores.weaviate.names import uuid_of
from stores.weaviate.reading import objects

OBJECTS_PER_CALL = 1000
BYTES_PER_CALL = 10_000_000
"""Weaviate takes messages of 104 MB, but one of this size in a second or two."""

_NUMBER_BYTES = 4
_OTHER_BYTES = 2000


def waves(chunks: Sequence[ChunkRecord]) -> Iterator[list[ChunkRecord]]:
    """Slices of a batch in which no chunk lies before its parent or in one slice with it.

    Weaviate refuses an object that refers to one which is not stored yet.
    """
    by_id = {chunk.chunk_id: chunk for chunk in chunks}
    depths: dict[str, int] = {}

    def depth(chunk: ChunkRecord) -> int:
        way: list[str] = []
        at: ChunkRecord | None = chunk
        while at and at.chunk_id not in depths and at.chunk_id not in way:
            way.append(at.chunk_id)
            at = by_id.get(at.parent_id)
        below = depths.get(at.chunk_id, -1) if at else -1
        for chunk_id in reversed(way):
            below += 1
            depths[chunk_id] = below
        return depths[chunk.chunk_id]

    levels: dict[int, list[ChunkRecord]] = {}
    for chunk in chunks:
        levels.setdefault(depth(chunk), []).append(chunk)
    for level in sorted(levels):
        yield from slices(
            levels[level], count=OBJECTS_PER_CALL, size=BYTES_PER_CALL, size_of=_bytes
        )


def references(
    chunks: Sequence[ChunkRecord], chunks_at: At, documents_at: At
) -> list[dict[str, UUID]]:
    """What each chunk refers to, of what is stored: its parent and its document."""
    parents = {uuid_of(c.parent_id) for c in chunks if c.parent_id}
    documents = {uuid_of(c.document_id) for c in chunks}
    stored = {
        PARENT: objects(chunks_at, list(parents), ["chunk_id"]).keys(),
        OF_DOC: objects(documents_at, list(documents), ["doc_id"]).keys(),
    }
    wanted = ({PARENT: uuid_of(c.parent_id), OF_DOC: uuid_of(c.document_id)} for c in chunks)
    return [{at: u for at, u in each.items() if u in stored[at]} for each in wanted]


def put(at: At, items: Sequence[tuple[str, DataObject[Any, Any]]]) -> Mapping[str, str]:
    """Write objects under their ids; the reason of each that the server refused.

    StoreReadOnly where it takes none: then it names one object only of those that it left out.
    """
    try:
        errors = at.data.insert_many([each for _, each in items]).errors
        refused = {items[i][0]: error.message for i, error in errors.items()}
    except WeaviateInsertManyAllFailedError as error:
        refused = dict.fromkeys((id_ for id_, _ in items), str(error.message))
    except TooLarge:
        if len(items) == 1:
            return {items[0][0]: "it is larger than a message that Weaviate takes"}
        middle = len(items) // 2
        return {**put(at, items[:middle]), **put(at, items[middle:])}
    if any(is_read_only(message) for message in refused.values()):
        raise read_only()
    return {id_: f"Weaviate refused it: {_told(message)}" for id_, message in refused.items()}


def remove(at: At, where: FilterReturn) -> None:
    """Remove all objects that match; a call removes no more than its most results."""
    while True:
        outcome = at.data.delete_many(where=where)
        if outcome.failed:
            if any(is_read_only(shard.status) for shard in at.config.get_shards()):
                raise read_only()
            raise StoreDown(f"Weaviate kept {outcome.failed} objects that were to be removed.")
        if not outcome.matches:
            return


def _bytes(chunk: ChunkRecord) -> int:
    numbers = sum(len(vector) for vector in (chunk.vector, *chunk.named.values()))
    return 3 * (len(chunk.body) + len(chunk.terms)) + _NUMBER_BYTES * numbers + _OTHER_BYTES


def _told(message: str) -> str:
    """A server's message up to the first quotation mark: a value may follow."""
    return message.partition("'")[0].strip()[:200]
