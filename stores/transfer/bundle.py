"""One document with all data that moves with it: reads it from one store, writes it to another."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from callslip.errors import CopyDiffers, MoveError
from callslip.stores.batching import batches
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger, Snapshot, Transcript
from callslip.stores.records import (
    ChunkRecord,
    DocumentRecord,
    StoredChunk,
    Vector,
    dated,
    for_audience,
)

BATCH = 256
"""The number of chunks that are read at once, and about which documents are grouped."""

SETTLE_SECONDS = 30.0
"""How long a read waits for a running upsert of the document."""

PLAIN = tuple(f.name for f in fields(ChunkRecord) if f.name not in ("vector", "named", "terms"))
"""The fields of a chunk that every store returns unchanged."""


@dataclass(frozen=True)
class DocumentBundle:
    """A live document: its transcript from the ledger, its record, and its chunks.

    The chunks are ordered by level, so that parents come first, and then by their order in the
    text. `upserts` distinguishes this state of the store from a later one.
    """

    transcript: Transcript
    record: DocumentRecord
    chunks: tuple[ChunkRecord, ...]
    upserts: int = 0


def collect(
    ledger: Ledger, store: Store, collection: str, document_id: str, *, settled: bool = False
) -> DocumentBundle | None:
    """Read a document from its store; None if it is not live.

    Data that changes during the read is read again. If the document is being upserted, the call
    waits, or returns None with `settled`. Raises MoveError if the store lacks some of its data.
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
        bundle = _read(store, collection, before)
        after = ledger.transcripts.read(document_id)
        if after == before or (late and bundle is not None and after is not None):
            if bundle is None:
                raise MoveError(
                    f"store {store.kind!r} lacks chunks of document {document_id}",
                    hint="Submit the document again, or delete it; then run the command again.",
                )
            return bundle


def grouped(bundles: Iterable[DocumentBundle]) -> Iterator[list[DocumentBundle]]:
    """Group bundles by tenant, about BATCH chunks at a time.

    So a store writes many small documents at once.
    """
    groups: dict[str, list[DocumentBundle]] = {}
    waiting = 0
    for bundle in bundles:
        groups.setdefault(bundle.transcript.tenant, []).append(bundle)
        waiting += max(1, len(bundle.chunks))
        if waiting >= BATCH:
            yield from groups.values()
            groups, waiting = {}, 0
    yield from groups.values()


def put(
    store: Store, collection: str, bundles: Sequence[DocumentBundle], alive: Callable[[], None]
) -> None:
    """Write documents of one tenant, check every outcome, and compare the result with the store.

    Deletes other data that the store has of a document. `alive` is called between batches and may
    raise. Raises CopyDiffers if the store does not contain what was written.
    """
    tenant = bundles[0].transcript.tenant
    if tenant:
        store.ensure_tenant(collection, tenant)
    records = [bundle.record for bundle in bundles]
    _whole(store.batch_upsert_documents(collection, records, tenant=tenant).failed, {})
    chunks = [chunk for bundle in bundles for chunk in bundle.chunks]
    owners = {chunk.chunk_id: chunk.document_id for chunk in chunks}
    tuned = store.batch_size
    for some in batches(chunks, lambda: tuned.size):
        alive()
        with tuned.measured(len(some)):
            outcome = store.batch_upsert_chunks(collection, some, tenant=tenant)
        _whole(outcome.failed, owners)
    for bundle in bundles:
        alive()
        document_id = bundle.transcript.document_id
        stored = store.chunk_ids(collection, document_id, tenant=tenant)
        if extra := set().union(*stored.values()) - {c.chunk_id for c in bundle.chunks}:
            store.delete_chunks(collection, extra, tenant=tenant)
        if fault := fault_of(store, collection, bundle):
            raise CopyDiffers(f"document {document_id} in store {store.kind!r}: {fault}")


def fault_of(store: Store, collection: str, bundle: DocumentBundle) -> str | None:
    """Describe the first difference between the store and the bundle; None if there is none.

    Ids are compared in every index, and one random chunk is compared in all fields and vectors.
    """
    document_id, tenant = bundle.transcript.document_id, bundle.transcript.tenant
    wanted = {c.chunk_id for c in bundle.chunks}
    for half, ids in store.chunk_ids(collection, document_id, tenant=tenant).items():
        name = half.removeprefix("vector:") if half.startswith("vector:") else ""
        due = {c.chunk_id for c in bundle.chunks if name in c.named} if name else wanted
        if ids != due and not (name and ids == wanted):
            return f"the {half} half has {len(due - ids)} chunks too few, {len(ids - due)} too many"
    if not store.get_documents(collection, [document_id], tenant=tenant):
        return "its record is missing"
    if bundle.chunks:
        chunk = random.choice(bundle.chunks)  # noqa: S311 - a sample
        sample = [chunk.chunk_id]
        (stored,) = store.get_chunks(
            collection, sample, tenant=tenant, include_vector=True, include_terms=True
        )
        if differing := _differing(chunk, record_of(stored)):
            return f"of chunk {chunk.chunk_id} differ: {', '.join(differing)}"
        for copy in store.copies(collection, sample, tenant=tenant):
            if any(getattr(copy, name) != getattr(stored, name) for name in PLAIN):
                return f"the copy of chunk {chunk.chunk_id} differs from it"
    return None


def record_of(chunk: StoredChunk) -> ChunkRecord:
    """The record to write a chunk that was read with its vectors and terms."""
    assert chunk.vector is not None  # noqa: S101 - it was requested
    plain = {name: getattr(chunk, name) for name in PLAIN}
    return ChunkRecord(**plain, vector=chunk.vector, named=chunk.named, terms=chunk.terms or "")


def _read(store: Store, collection: str, snapshot: Snapshot) -> DocumentBundle | None:
    """Read the live chunks and the record of a document; None if any of them is missing."""
    transcript = snapshot.transcript
    tenant, ids = transcript.tenant, sorted(transcript.chunks)
    chunks: list[ChunkRecord] = []
    for start in range(0, len(ids), BATCH):
        some = ids[start : start + BATCH]
        stored = store.get_chunks(
            collection, some, tenant=tenant, include_vector=True, include_terms=True
        )
        chunks += [record_of(chunk) for chunk in stored if chunk.vector is not None]
    records = store.get_documents(collection, [transcript.document_id], tenant=tenant)
    if len(chunks) != len(ids) or not records:
        return None
    # Parents first: a store may accept a reference only to a stored chunk.
    chunks.sort(key=lambda c: (c.level, c.ordinal, c.chunk_id))
    record, chunks = for_audience(transcript.audience, records[0], chunks)
    chunks = [_dated(chunk, transcript) for chunk in chunks]
    return DocumentBundle(transcript, record, tuple(chunks), snapshot.upserts)


def _dated(chunk: ChunkRecord, transcript: Transcript) -> ChunkRecord:
    """The chunk with the ledger's times if it has none: an earlier release wrote it without."""
    if chunk.created_at:
        return chunk
    submitted = {version.version: version.created_at for version in transcript.versions}
    since = transcript.chunks[chunk.chunk_id].first_version
    updated_at = submitted.get(since, transcript.live.created_at)
    return dated([chunk], transcript.created_at, updated_at)[0]


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
