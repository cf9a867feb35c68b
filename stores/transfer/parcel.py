"""One document with all that moves with it: taken out of one store, put into another."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from callslip.errors import CopyDiffers, MoveError
from stores.contract import Store
from stores.ledger import Ledger, Snapshot, Transcript
from stores.records import ChunkRecord, DocumentRecord, StoredChunk, Vector

BATCH = 256
"""Chunks that are read or written at once."""

SETTLE_SECONDS = 30.0
"""How long to wait for a running upsert of the document that is read."""

PLAIN = tuple(f.name for f in fields(ChunkRecord) if f.name not in ("vector", "named", "terms"))
"""Fields of a chunk that every store gives back as they are."""


@dataclass(frozen=True)
class Parcel:
    """A live document: what the ledger says of it, its record and its chunks in the text's order.

    `upserts` tells a later state of the store from this one.
    """

    transcript: Transcript
    record: DocumentRecord
    chunks: tuple[ChunkRecord, ...]
    upserts: int = 0


def collect(
    ledger: Ledger, store: Store, collection: str, document_id: str, *, settled: bool = False
) -> Parcel | None:
    """Take a document out of its store; None where it is not live.

    What changes while it is read is read again. With `settled` a document that is being upserted
    is None too, otherwise it is waited for. MoveError where the store lacks something of it.
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        before = ledger.transcripts.read(document_id)
        if before is None:
            return None
        if before.upserting is not None and settled:
            return None
        late = time.monotonic() > deadline
        if (before.upserting or 0.0) > time.time() and not late:
            time.sleep(0.1)
            continue
        parcel = _read(store, collection, before)
        after = ledger.transcripts.read(document_id)
        if after == before or (late and parcel is not None and after is not None):
            if parcel is None:
                raise MoveError(
                    f"store {store.kind!r} lacks chunks of document {document_id}",
                    hint="Submit the document again, or delete it; then run the command again.",
                )
            return parcel


def grouped(parcels: Iterable[Parcel]) -> Iterator[list[Parcel]]:
    """Groups of one tenant and some BATCH chunks: a store takes many small documents at once."""
    groups: dict[str, list[Parcel]] = {}
    waiting = 0
    for parcel in parcels:
        groups.setdefault(parcel.transcript.tenant, []).append(parcel)
        waiting += max(1, len(parcel.chunks))
        if waiting >= BATCH:
            yield from groups.values()
            groups, waiting = {}, 0
    yield from groups.values()


def put(
    store: Store, collection: str, parcels: Sequence[Parcel], alive: Callable[[], None]
) -> None:
    """Write documents of one tenant, look at every outcome, and look at what is there then.

    What the store holds of a document besides goes. `alive` is called between batches and may
    raise. CopyDiffers where the store does not hold what was given.
    """
    tenant = parcels[0].transcript.tenant
    if tenant:
        store.ensure_tenant(collection, tenant)
    records = [parcel.record for parcel in parcels]
    _whole(store.batch_upsert_documents(collection, records, tenant=tenant).failed, {})
    chunks = [chunk for parcel in parcels for chunk in parcel.chunks]
    owners = {chunk.chunk_id: chunk.document_id for chunk in chunks}
    for start in range(0, len(chunks), BATCH):
        alive()
        some = chunks[start : start + BATCH]
        _whole(store.batch_upsert_chunks(collection, some, tenant=tenant).failed, owners)
    for parcel in parcels:
        alive()
        document_id = parcel.transcript.document_id
        held = store.chunk_ids(collection, document_id, tenant=tenant)
        if extra := set().union(*held.values()) - {c.chunk_id for c in parcel.chunks}:
            store.delete_chunks(collection, extra, tenant=tenant)
        if fault := fault_of(store, collection, parcel):
            raise CopyDiffers(f"document {document_id} in store {store.kind!r}: {fault}")


def fault_of(store: Store, collection: str, parcel: Parcel) -> str | None:
    """Say what the store does not hold as it was given; None where nothing is found.

    Ids are compared in every half, and one chunk, taken at random, in all its fields and vectors.
    """
    document_id, tenant = parcel.transcript.document_id, parcel.transcript.tenant
    wanted = {c.chunk_id for c in parcel.chunks}
    for half, ids in store.chunk_ids(collection, document_id, tenant=tenant).items():
        name = half.removeprefix("vector:") if half.startswith("vector:") else ""
        due = {c.chunk_id for c in parcel.chunks if name in c.named} if name else wanted
        if ids != due and not (name and ids == wanted):
            return f"the {half} half has {len(due - ids)} chunks too few, {len(ids - due)} too many"
    if not store.get_documents(collection, [document_id], tenant=tenant):
        return "its record is missing"
    if parcel.chunks:
        chunk = random.choice(parcel.chunks)  # noqa: S311 - a sample
        (found,) = store.get_chunks(
            collection, [chunk.chunk_id], tenant=tenant, include_vector=True, include_terms=True
        )
        if differing := _differing(chunk, record(found)):
            return f"of chunk {chunk.chunk_id} differ: {', '.join(differing)}"
    return None


def record(chunk: StoredChunk) -> ChunkRecord:
    """A chunk as it was given to the store that gives it back with its vectors and terms."""
    assert chunk.vector is not None  # noqa: S101 - it was asked for
    plain = {name: getattr(chunk, name) for name in PLAIN}
    return ChunkRecord(**plain, vector=chunk.vector, named=chunk.named, terms=chunk.terms or "")


def _read(store: Store, collection: str, snapshot: Snapshot) -> Parcel | None:
    """Read what the ledger says is live; None where something of it is missing."""
    transcript = snapshot.transcript
    tenant, ids = transcript.tenant, sorted(transcript.chunks)
    chunks: list[ChunkRecord] = []
    for start in range(0, len(ids), BATCH):
        some = ids[start : start + BATCH]
        found = store.get_chunks(
            collection, some, tenant=tenant, include_vector=True, include_terms=True
        )
        chunks += [record(chunk) for chunk in found if chunk.vector is not None]
    records = store.get_documents(collection, [transcript.document_id], tenant=tenant)
    if len(chunks) != len(ids) or not records:
        return None
    # Parents first: a store may take a reference only to what it holds already.
    chunks.sort(key=lambda c: (c.level, c.ordinal, c.chunk_id))
    return Parcel(transcript, records[0], tuple(chunks), snapshot.upserts)


def _differing(one: ChunkRecord, other: ChunkRecord) -> list[str]:
    differing = [name for name in PLAIN if getattr(one, name) != getattr(other, name)]
    if one.terms.split() != other.terms.split():
        differing.append("terms")
    if not _alike(one.vector, other.vector):
        differing.append("vector")
    if one.named.keys() != other.named.keys():
        return [*differing, "names of vectors"]
    return differing + [
        f"vector {name!r}" for name in one.named if not _alike(one.named[name], other.named[name])
    ]


def _alike(one: Vector, other: Vector) -> bool:
    return bool(np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=1e-5, atol=1e-6))


def _whole(failed: Mapping[str, str], owners: Mapping[str, str]) -> None:
    if failed:
        object_id, reason = next(iter(failed.items()))
        raise MoveError(
            f"the store refused {len(failed)} objects, first {object_id} of document"
            f" {owners.get(object_id, object_id)}: {reason}",
            hint="Correct what is named, usually a property, and submit the document again.",
        )
