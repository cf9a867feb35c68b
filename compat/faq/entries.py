"""Rows of an FAQ in a collection: each row is a chunk, and all chunks belong to one document.

The chunks are provided chunks (`ingestion.provided_chunks`): no file exists to cut them from.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from callslip.compat.context import AdapterContext
from callslip.compat.faq.rows import Row, entry_id
from callslip.compat.nearest import NO_EMBEDDER
from callslip.config.sections.faq import Strategy
from callslip.errors import InvalidRequest
from callslip.ingestion import provided_chunks
from callslip.models.text.language import lang
from callslip.stores.ledger import CollectionRecord
from callslip.stores.levels import PASSAGE
from callslip.stores.records import ChunkRecord, StoredChunk, Value, Vector, public

DOCUMENT = "faq"
"""The name of the document whose chunks are the rows of a collection."""

BATCH = 200
"""The number of rows that are read or written at once."""

LONGEST_HEADING = 200


@dataclass(frozen=True)
class Counts:
    """The numbers of new, changed and unchanged rows."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0


def put(
    context: AdapterContext, record: CollectionRecord, strategy: Strategy, rows: Sequence[Row]
) -> Counts:
    """Write the new and the changed rows; other rows of the collection stay.

    A row's id identifies it. Only new texts are embedded. Raises Conflict if a document that was
    made from a file has the name `DOCUMENT`; TransientError while another process changes the rows.
    """
    wanted = {chunk_id(record.name, row.id): row for row in rows}
    stored = _stored(context, record, wanted)
    unlike = {
        i: row
        for i, row in wanted.items()
        if i not in stored
        or stored[i].body != row.text(strategy)
        or _as_json(public(stored[i].properties)) != _as_json(row.metadata)
    }
    if unlike:
        vectors = _vectors(
            context, record, {i: r.text(strategy) for i, r in unlike.items()}, stored
        )
        chunks = [_chunk(context, record, i, r, strategy, vectors[i]) for i, r in unlike.items()]
        chunks = context.with_named(record, chunks)
        provided_chunks.put(_scope(context, record), DOCUMENT, chunks, BATCH)
    changed = len(unlike.keys() & stored.keys())
    return Counts(len(unlike) - changed, changed, len(wanted) - len(unlike))


def ids(context: AdapterContext, record: CollectionRecord) -> list[Value]:
    """Return the ids of all rows, numbers before texts."""
    store, live = context.store_of(record.store), sorted(_live(context, record))
    row_ids: list[Value] = []
    for at in range(0, len(live), BATCH):
        properties = store.properties(record.name, live[at : at + BATCH], ["id"])
        row_ids += [of["id"] for of in properties.values() if "id" in of]
    return sorted(row_ids, key=row_order)


def remove(context: AdapterContext, record: CollectionRecord, row_ids: Iterable[int | str]) -> int:
    """Remove the rows with these ids, which hides them at once; return how many existed."""
    going = {chunk_id(record.name, i) for i in row_ids} & _live(context, record)
    document_id = _document(context, record)
    if going and document_id is not None:
        provided_chunks.take_out(_scope(context, record), document_id, going)
    return len(going)


def chunk_id(collection: str, row_id: int | str) -> str:
    """Return the id of a row's chunk, which is unique across collections."""
    return hashlib.sha256(f"{collection}\0{entry_id(row_id)}".encode()).hexdigest()[:32]


def row_order(row_id: Value) -> tuple[bool, int, str]:
    """Return a sort key: numbers before texts, numbers by value, texts in code point order."""
    number = row_id if isinstance(row_id, int) else 0
    return not isinstance(row_id, int | float), number, str(row_id)


def _document(context: AdapterContext, record: CollectionRecord) -> str | None:
    return context.ledger.documents.id_of(record.name, DOCUMENT)


def _live(context: AdapterContext, record: CollectionRecord) -> set[str]:
    document_id = _document(context, record)
    return context.ledger.chunks.live_ids(document_id) if document_id is not None else set()


def _stored(
    context: AdapterContext, record: CollectionRecord, wanted: Mapping[str, Row]
) -> dict[str, StoredChunk]:
    there = sorted(wanted.keys() & _live(context, record))
    if not there:
        return {}
    store = context.store_of(record.store)
    return {c.chunk_id: c for c in store.get_chunks(record.name, there, include_vector=True)}


def _vectors(
    context: AdapterContext,
    record: CollectionRecord,
    texts: Mapping[str, str],
    stored: Mapping[str, StoredChunk],
) -> dict[str, Vector]:
    """Return vectors by chunk id: stored vectors for unchanged texts, new ones for other texts."""
    vectors = {
        i: vector
        for i, text in texts.items()
        if i in stored and stored[i].body == text and (vector := stored[i].vector) is not None
    }
    missing = [i for i in texts if i not in vectors]
    if not missing:
        return vectors
    embedder = context.embedder()
    if embedder.lexical_only:
        raise InvalidRequest(NO_EMBEDDER, hint="Set embedder.kind in the settings.")
    if embedder.model != record.embedder:
        raise InvalidRequest(
            f"collection {record.name!r} was embedded with {record.embedder!r},"
            f" this installation runs {embedder.model!r}",
            hint="Set the embedder back, or ingest under another name.",
        )
    made = embedder.passages([texts[i] for i in missing])
    return vectors | dict(zip(missing, made, strict=True))


def _chunk(
    context: AdapterContext,
    record: CollectionRecord,
    id_: str,
    row: Row,
    strategy: Strategy,
    vector: Vector,
) -> ChunkRecord:
    text = row.text(strategy)
    return ChunkRecord(
        chunk_id=id_,
        document_id="",
        body=text,
        terms=context.analyze(record, text),
        vector=vector,
        heading=" ".join(row.question.split())[:LONGEST_HEADING],
        title=DOCUMENT,
        filename=DOCUMENT,
        lang=lang(text),
        level=PASSAGE,
        end=len(text),
        properties=row.metadata,
    )


def _scope(context: AdapterContext, record: CollectionRecord) -> provided_chunks.ChunkScope:
    return provided_chunks.ChunkScope(context.backend, record.store, record.name)


def _as_json(properties: Mapping[str, Value]) -> str:
    """Return properties as JSON for a comparison, because 1 and 1.0 are equal in Python."""
    return json.dumps(dict(properties), sort_keys=True)
