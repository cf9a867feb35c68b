"""The step upsert: the chunks in the store, checked and counted."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from callslip.errors import (
    CollectionNotFound,
    ObjectRefused,
    StoreDown,
    TenantNotFound,
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
from callslip.stores.ledger import Live, PageTable, VersionRecord
from callslip.stores.ledger.caches.vectors import text_hash
from callslip.stores.ledger.documents.chunks import Expected, Span
from callslip.stores.levels import PASSAGE
from callslip.stores.records import (
    AUDIENCE,
    ChunkRecord,
    DocumentRecord,
    for_audience,
)


@dataclass(frozen=True)
class _Prepared:
    """The records of a version, as the store is to have them.

    If the artifacts are gone, the records come from the store: then `spans` and `pages` are None,
    and `chunk_ids` also has chunks that the store cannot return.
    """

    work: Work
    store: Store
    document: DocumentRecord
    chunks: Sequence[ChunkRecord]
    chunk_ids: Sequence[str]
    audience: str
    spans: Mapping[str, Span] | None
    pages: PageTable | None

    @property
    def expected(self) -> Expected:
        """The chunks that the ledger is to know before the store has them."""
        hashes = {chunk.chunk_id: _hash(chunk) for chunk in self.chunks}
        return Expected(self.work.claim, hashes, self.spans or {}, self.pages)

    @property
    def names(self) -> set[str]:
        """The names of the properties that the document and its chunks have."""
        names = set(self.document.properties).union(*(c.properties for c in self.chunks))
        return names - {AUDIENCE}

    def live(self, written: int) -> Live:
        """The result of the step, with the number of chunks that were written."""
        passages = sum(c.level >= PASSAGE for c in self.chunks)
        parents = len(self.chunk_ids) - passages
        counts = {"chunks": passages, "parents": parents, "written": written}
        return Live(self.work.claim, self.chunk_ids, counts, self.audience)


def upsert_chunks(work: Work) -> Live:
    """Write new and changed chunks of all levels, check each result and count the stored chunks.

    Raises StoreDown if the store lost the collection, the tenant or chunks, ObjectRefused if it
    refused an object, FileNotFoundError if an artifact is missing and the version is not live.
    """
    version, ledger = work.version, work.context.ledger
    its = _prepared(work)
    ledger.chunks.expect(*its.expected)
    written = _write_unlike([its])[version.document_id]
    at, tenant = version.collection, version.tenant
    with _reaching(its.store, version):
        stored_ids = its.store.chunk_ids(at, version.document_id, tenant=tenant)
    for half, lacking in records.lacking(its.chunks, stored_ids).items():
        raise StoreDown(
            f"the {half} half of the store lacks {len(lacking)} of {len(its.chunk_ids)} chunks"
        )
    return its.live(written)


def upsert_together(works: Sequence[Work]) -> dict[int, Live]:
    """Write the chunks of documents in common batches; return their results by number.

    All are of one collection and tenant, and no store has anything of a first version yet. What
    fails is left out: `upsert_chunks` repeats the step for each alone, and raises the error of the
    one. Raises StoreDown if the store does not answer, ObjectRefused if it refused an object.
    """
    prepared: dict[int, _Prepared] = {}
    for number, work in enumerate(works):
        with suppress(Exception):
            prepared[number] = _prepared(work)
    if not prepared:
        return {}
    version, ledger = works[0].version, works[0].context.ledger
    failed = ledger.chunks.expect_all([its.expected for its in prepared.values()])
    sound = {n: its for (n, its), error in zip(prepared.items(), failed, strict=True) if not error}
    if not sound:
        return {}
    every = list(sound.values())
    store, chunks = every[0].store, [chunk for its in every for chunk in its.chunks]
    new = {its.document.document_id for its in every if its.work.version.version == 1}
    written = _write_unlike(every, new)
    with _reaching(store, version):
        stored = store.get_chunks(
            version.collection,
            [chunk.chunk_id for chunk in chunks],
            tenant=version.tenant,
            include_vector=any(chunk.named for chunk in chunks),
            include_terms=True,
        )
    whole = {c.chunk_id: c.named.keys() for c in stored if c.terms is not None}
    return {
        number: its.live(written[its.document.document_id])
        for number, its in sound.items()
        if all(c.chunk_id in whole and c.named.keys() <= whole[c.chunk_id] for c in its.chunks)
    }


def _write_unlike(every: Sequence[_Prepared], new: Collection[str] = frozenset()) -> dict[str, int]:
    """Write the chunks that the store lacks or has in another form, and the documents.

    Returns the number of chunks that this attempt wrote, by document id. The store has nothing of
    the documents `new`. New chunks come first, because searches do not see them yet. Changes of
    chunks that searches already see, such as a changed property, come last, so that searches see
    them as late as possible before the versions go live.
    """
    work, store, version = every[0].work, every[0].store, every[0].work.version
    names = set().union(*(its.names for its in every))
    work.context.ledger.collections.has_properties(version.collection, names)
    chunks_of = {its.document.document_id: its.chunks for its in every}
    known = {i: chunks for i, chunks in chunks_of.items() if i not in new}
    with _reaching(store, version):
        if version.tenant:
            store.ensure_tenant(version.collection, version.tenant)
        unlike = records.unlike(version, store, known) if known else {}
        unlike |= {i: (list(chunks), []) for i, chunks in chunks_of.items() if i in new}
        added = [chunk for some, _ in unlike.values() for chunk in some]
        changed = [chunk for _, some in unlike.values() for chunk in some]
        _write([its.work for its in every], store, [*added, *changed])
        _write_documents(every)
    return {i: len(added) + len(changed) for i, (added, changed) in unlike.items()}


def _prepared(work: Work) -> _Prepared:
    """Build the records from the artifacts, or from the store if these are gone.

    Raises FileNotFoundError if an artifact is missing and the version is not live.
    """
    version, ledger = work.version, work.context.ledger
    store = work.context.store_of(work.collection.store)
    spans: dict[str, Span] | None = None
    pages: PageTable | None = None
    try:
        extracted = work.read("extract", EXTRACTED)
        document, chunks = _made(work, extracted)
        pages = page_table(extracted)
        ids = [c.chunk_id for c in chunks]
        spans = {c.chunk_id: (c.start, c.end) for c in chunks}
    except FileNotFoundError:
        if ledger.documents.get(version.document_id).live_version != version.version:
            raise
        ids = sorted(ledger.chunks.live_ids(version.document_id))
        with _reaching(store, version):
            document, chunks = records.still_stored(
                version, store, ids, work.analyzer, work.claim.document_created_at
            )
    audience = work.claim.audience
    document, chunks = for_audience(audience, document, chunks)
    return _Prepared(work, store, document, chunks, ids, audience, spans, pages)


@contextmanager
def _reaching(store: Store, version: VersionRecord) -> Iterator[None]:
    """Raise StoreDown if the store lost the collection or the tenant: the ledger has both."""
    try:
        yield
    except (CollectionNotFound, TenantNotFound) as error:
        tenant = f"tenant {version.tenant!r} of " if isinstance(error, TenantNotFound) else ""
        raise StoreDown(
            f"store {store.kind!r} has lost {tenant}collection {version.collection!r}",
            hint="`callslip audit --repair` creates it again from the ledger.",
        ) from None


def _write_documents(prepared: Sequence[_Prepared]) -> None:
    first, documents = prepared[0], [its.document for its in prepared]
    at = first.work.version
    outcome = first.store.batch_upsert_documents(at.collection, documents, tenant=at.tenant)
    _whole(outcome.failed)


def _write(works: Sequence[Work], store: Store, chunks: Sequence[ChunkRecord]) -> None:
    """Write chunks in batches of the settings' size, or of the size that suits the store."""
    at = works[0].version
    fixed, tuned = works[0].context.settings.ingest.batch_size, store.batch_size
    for batch in batches(chunks, lambda: fixed or tuned.size):
        for work in works:
            work.lease.check()
        with tuned.measured(len(batch)):
            outcome = store.batch_upsert_chunks(at.collection, batch, tenant=at.tenant)
        _whole(outcome.failed)


def _made(work: Work, extracted: ExtractedText) -> tuple[DocumentRecord, list[ChunkRecord]]:
    return records.made(
        work.version,
        extracted,
        work.read("enrich", ENRICHED),
        work.read("embed", VECTORS),
        created_at=work.claim.document_created_at,
        options=work.options,
    )


def _hash(chunk: ChunkRecord) -> str:
    """Return the hash of the embedded text; empty for a parent, whose vector is a mean."""
    return text_hash(chunk.body) if chunk.level >= PASSAGE else ""


def _whole(failed: Mapping[str, str]) -> None:
    if failed:
        object_id, reason = next(iter(failed.items()))
        raise ObjectRefused(f"the store refused {len(failed)} objects, first {object_id}: {reason}")
