"""The step upsert: the chunks in the store, checked and counted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from callslip.errors import (
    CollectionNotFound,
    ObjectRefused,
    StoreDown,
)
from callslip.ingestion import records
from callslip.ingestion.artifacts import (
    ENRICHED,
    EXTRACTED,
    VECTORS,
)
from callslip.ingestion.pages.units import page_table
from callslip.ingestion.steps.work import Work
from callslip.ingestion.values import ExtractedText
from callslip.stores.batching import batches
from callslip.stores.contract import Store
from callslip.stores.ledger import PageTable
from callslip.stores.ledger.caches.vectors import text_hash
from callslip.stores.ledger.documents.chunks import Span
from callslip.stores.levels import PASSAGE
from callslip.stores.records import (
    AUDIENCE,
    ChunkRecord,
    DocumentRecord,
    for_audience,
)


@dataclass(frozen=True)
class Stored:
    """The result of the upsert step: chunk ids of the document, their audience, and counters."""

    chunk_ids: Sequence[str]
    audience: str
    counts: dict[str, int] = field(default_factory=dict)


def upsert_chunks(work: Work) -> Stored:
    """Write new and changed chunks of all levels, check each result and count the stored chunks.

    New chunks are written first, because searches do not see them yet. Changes of chunks that
    searches already see, such as a changed property, are written last, just before the version
    goes live.

    Raises StoreDown if the store lost the collection or some chunks, ObjectRefused if the store
    refused an object, FileNotFoundError if an artifact is missing and the version is not live.
    """
    version, ledger = work.version, work.context.ledger
    collection = ledger.collections.get(version.collection)
    store, tenant = work.context.store_of(collection.store), version.tenant
    created_at = ledger.documents.get(version.document_id).created_at
    spans: dict[str, Span] | None = None
    pages: PageTable | None = None
    try:
        extracted = work.read("extract", EXTRACTED)
        document, chunks = _made(work, extracted, created_at)
        pages = page_table(extracted)
        ids = [c.chunk_id for c in chunks]
        spans = {c.chunk_id: (c.start, c.end) for c in chunks}
    except FileNotFoundError:
        if ledger.documents.get(version.document_id).live_version != version.version:
            raise
        ids = sorted(ledger.chunks.live_ids(version.document_id))
        document, chunks = records.still_stored(version, store, ids, work.analyzer, created_at)
    audience = ledger.readers.audience(version.document_id)
    document, chunks = for_audience(audience, document, chunks)
    ledger.chunks.expect(work.claim, {c.chunk_id: _hash(c) for c in chunks}, spans, pages)
    names = set(document.properties).union(*(c.properties for c in chunks))
    ledger.collections.has_properties(version.collection, names - {AUDIENCE})
    try:
        if tenant:
            store.ensure_tenant(version.collection, tenant)
        new, changed = records.unlike(version, store, chunks)
    except CollectionNotFound:  # the ledger has it
        raise StoreDown(
            f"store {store.kind!r} has lost collection {version.collection!r}",
            hint="`callslip audit --repair` creates it again from the ledger.",
        ) from None
    for some in (new, changed):
        _write(work, store, some)
    _whole(store.batch_upsert_documents(version.collection, [document], tenant=tenant).failed)
    stored_ids = store.chunk_ids(version.collection, version.document_id, tenant=tenant)
    for half, lacking in records.lacking(chunks, stored_ids).items():
        raise StoreDown(f"the {half} half of the store lacks {len(lacking)} of {len(ids)} chunks")
    passages = sum(c.level >= PASSAGE for c in chunks)
    counts = {"chunks": passages, "parents": len(ids) - passages}
    return Stored(ids, audience, counts | {"written": len(new) + len(changed)})


def _write(work: Work, store: Store, chunks: Sequence[ChunkRecord]) -> None:
    """Write chunks in batches of the settings' size, or of the size that suits the store."""
    fixed, tuned = work.context.settings.ingest.batch_size, store.batch_size
    for batch in batches(chunks, lambda: fixed or tuned.size):
        work.keeper.check()
        with tuned.measured(len(batch)):
            outcome = store.batch_upsert_chunks(
                work.version.collection, batch, tenant=work.version.tenant
            )
        _whole(outcome.failed)


def _made(
    work: Work, extracted: ExtractedText, created_at: float
) -> tuple[DocumentRecord, list[ChunkRecord]]:
    return records.made(
        work.version,
        extracted,
        work.read("enrich", ENRICHED),
        work.read("embed", VECTORS),
        created_at=created_at,
        options=work.options,
    )


def _hash(chunk: ChunkRecord) -> str:
    """Return the hash of the embedded text; empty for a parent, whose vector is a mean."""
    return text_hash(chunk.body) if chunk.level >= PASSAGE else ""


def _whole(failed: Mapping[str, str]) -> None:
    if failed:
        object_id, reason = next(iter(failed.items()))
        raise ObjectRefused(f"the store refused {len(failed)} objects, first {object_id}: {reason}")
