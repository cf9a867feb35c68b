"""Rows of an FAQ in a collection: one chunk each, of one document.

The rows are given chunks (`ingestion.given`): there is no file from which they could be cut.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from callslip.errors import InvalidRequest
from compat.faq.rows import Row, entry_id
from compat.floor import Floor
from compat.nearest import NO_EMBEDDER
from config.faq import Strategy
from ingestion import given
from models.language import lang
from stores.ledger import CollectionRecord
from stores.levels import PASSAGE
from stores.records import ChunkRecord, StoredChunk, Value, Vector

DOCUMENT = "faq"
"""The name of the document that the rows of a collection are chunks of."""

BATCH = 200
"""Rows that are read or written at once."""

LONGEST_HEADING = 200


@dataclass(frozen=True)
class Counts:
    """What became of rows."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0


def put(floor: Floor, record: CollectionRecord, strategy: Strategy, rows: Sequence[Row]) -> Counts:
    """Write the rows that are new or differ from what is there under their ids; others stay.

    A vector is made only of a text that is not there. Conflict where a document of a file has the
    name that the rows need; TransientError while another process changes them.
    """
    wanted = {chunk_id(record.name, row.id): row for row in rows}
    held = _held(floor, record, wanted)
    unlike = {
        i: row
        for i, row in wanted.items()
        if i not in held
        or held[i].body != row.text(strategy)
        or _told(held[i].properties) != _told(row.metadata)
    }
    if unlike:
        vectors = _vectors(floor, record, {i: r.text(strategy) for i, r in unlike.items()}, held)
        chunks = [_chunk(floor, i, r, strategy, vectors[i]) for i, r in unlike.items()]
        given.put(_shelf(floor, record), DOCUMENT, chunks, BATCH)
    changed = len(unlike.keys() & held.keys())
    return Counts(len(unlike) - changed, changed, len(wanted) - len(unlike))


def ids(floor: Floor, record: CollectionRecord) -> list[Value]:
    """The ids of all rows, numbers before texts."""
    store, live = floor.store_of(record.store), sorted(_live(floor, record))
    found: list[Value] = []
    for at in range(0, len(live), BATCH):
        held = store.properties(record.name, live[at : at + BATCH], ["id"])
        found += [of["id"] for of in held.values() if "id" in of]
    return sorted(found, key=place)


def remove(floor: Floor, record: CollectionRecord, row_ids: Iterable[int | str]) -> int:
    """Remove the rows of these ids, hidden at once; how many there were."""
    going = {chunk_id(record.name, i) for i in row_ids} & _live(floor, record)
    document_id = _document(floor, record)
    if going and document_id is not None:
        given.take_out(_shelf(floor, record), document_id, going)
    return len(going)


def chunk_id(collection: str, row_id: int | str) -> str:
    """The id of a row's chunk, for these are unique over all collections."""
    return hashlib.sha256(f"{collection}\0{entry_id(row_id)}".encode()).hexdigest()[:32]


def place(row_id: Value) -> tuple[bool, int, str]:
    """What rows are listed by: numbers before texts, each in their order."""
    number = row_id if isinstance(row_id, int) else 0
    return not isinstance(row_id, int | float), number, str(row_id)


def _document(floor: Floor, record: CollectionRecord) -> str | None:
    return floor.ledger.documents.id_of(record.name, DOCUMENT)


def _live(floor: Floor, record: CollectionRecord) -> set[str]:
    document_id = _document(floor, record)
    return floor.ledger.chunks.live_ids(document_id) if document_id is not None else set()


def _held(
    floor: Floor, record: CollectionRecord, wanted: Mapping[str, Row]
) -> dict[str, StoredChunk]:
    there = sorted(wanted.keys() & _live(floor, record))
    if not there:
        return {}
    store = floor.store_of(record.store)
    return {c.chunk_id: c for c in store.get_chunks(record.name, there, include_vector=True)}


def _vectors(
    floor: Floor,
    record: CollectionRecord,
    texts: Mapping[str, str],
    held: Mapping[str, StoredChunk],
) -> dict[str, Vector]:
    """By chunk id: those of texts that are there already, and the others made now."""
    found = {
        i: vector
        for i, text in texts.items()
        if i in held and held[i].body == text and (vector := held[i].vector) is not None
    }
    bare = [i for i in texts if i not in found]
    if not bare:
        return found
    embedder = floor.embedder()
    if embedder.lexical_only:
        raise InvalidRequest(NO_EMBEDDER, hint="Set embedder.kind in the settings.")
    if embedder.model != record.embedder:
        raise InvalidRequest(
            f"collection {record.name!r} was embedded with {record.embedder!r},"
            f" this installation runs {embedder.model!r}",
            hint="Set the embedder back, or ingest under another name.",
        )
    made = embedder.passages([texts[i] for i in bare])
    return found | dict(zip(bare, made, strict=True))


def _chunk(floor: Floor, id_: str, row: Row, strategy: Strategy, vector: Vector) -> ChunkRecord:
    text = row.text(strategy)
    return ChunkRecord(
        chunk_id=id_,
        document_id="",
        body=text,
        terms=floor.analyze(text),
        vector=vector,
        heading=" ".join(row.question.split())[:LONGEST_HEADING],
        title=DOCUMENT,
        filename=DOCUMENT,
        lang=lang(text),
        level=PASSAGE,
        end=len(text),
        properties=row.metadata,
    )


def _shelf(floor: Floor, record: CollectionRecord) -> given.Shelf:
    return given.Shelf(floor.ledger, floor.store_of(record.store), record.name, floor.blobs)


def _told(properties: Mapping[str, Value]) -> str:
    """As JSON: Python takes 1 and 1.0 for the same."""
    return json.dumps(dict(properties), sort_keys=True)
