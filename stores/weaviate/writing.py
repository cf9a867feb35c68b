"""Writes objects into a class and removes them, and checks each result."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from weaviate.classes.data import DataObject
from weaviate.collections.classes.filters import FilterReturn
from weaviate.exceptions import WeaviateInsertManyAllFailedError

from callslip.errors import StoreDown
from callslip.stores.batching import slices
from callslip.stores.records import ChunkRecord
from callslip.stores.weaviate.classes import OF_DOC, PARENT
from callslip.stores.weaviate.connection import At, TooLarge, is_read_only, read_only
from callslip.stores.weaviate.names import uuid_of
from callslip.stores.weaviate.reading import objects

OBJECTS_PER_CALL = 1000
BYTES_PER_CALL = 10_000_000
"""Weaviate accepts messages of 104 MB; one of this size takes a second or two."""

_NUMBER_BYTES = 4
_OTHER_BYTES = 2000


def waves(chunks: Sequence[ChunkRecord]) -> Iterator[list[ChunkRecord]]:
    """Cut a batch into slices so that no chunk is before its parent or in the same slice.

    Weaviate refuses an object with a reference to an object that is not stored yet.
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
    """The references of each chunk, to its parent and its document, if they are stored."""
    parents = {uuid_of(c.parent_id) for c in chunks if c.parent_id}
    documents = {uuid_of(c.document_id) for c in chunks}
    stored = {
        PARENT: objects(chunks_at, list(parents), ["chunk_id"]).keys(),
        OF_DOC: objects(documents_at, list(documents), ["doc_id"]).keys(),
    }
    wanted = ({PARENT: uuid_of(c.parent_id), OF_DOC: uuid_of(c.document_id)} for c in chunks)
    return [{at: u for at, u in each.items() if u in stored[at]} for each in wanted]


def put(at: At, items: Sequence[tuple[str, DataObject[Any, Any]]]) -> Mapping[str, str]:
    """Write objects; return the server's reason for each refused one, by id.

    `items` are pairs of an id and an object. Raises StoreReadOnly if the server cannot write: then
    the server names only one of the objects that it did not store.
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
    return {id_: f"Weaviate refused it: {_message(message)}" for id_, message in refused.items()}


def remove(at: At, where: FilterReturn) -> None:
    """Remove all objects that match, in several calls.

    One call removes at most QUERY_MAXIMUM_RESULTS objects.
    """
    while True:
        outcome = at.data.delete_many(where=where)
        if outcome.failed:
            if any(is_read_only(shard.status) for shard in at.config.get_shards()):
                raise read_only()
            raise StoreDown(
                f"Weaviate still has {outcome.failed} objects that it should have removed."
            )
        if not outcome.matches:
            return


def _bytes(chunk: ChunkRecord) -> int:
    numbers = sum(len(vector) for vector in (chunk.vector, *chunk.named.values()))
    return 3 * (len(chunk.body) + len(chunk.terms)) + _NUMBER_BYTES * numbers + _OTHER_BYTES


def _message(message: str) -> str:
    """The server's message up to the first quotation mark: a stored value may follow."""
    return message.partition("'")[0].strip()[:200]
