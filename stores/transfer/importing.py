"""Imports an archive. The whole archive is checked before the first document is imported.

A document's blobs are written first, then its chunks, each checked, and its ledger rows last, in
one transaction, so that it appears at once and whole. The same call continues an interrupted
import.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from callslip.errors import CollectionNotFound, Conflict, CopyDiffers, PermanentError
from callslip.stores.backend import Backend
from callslip.stores.contract import Store
from callslip.stores.ledger import CollectionRecord, Ledger
from callslip.stores.ledger.caches.vectors import text_hash
from callslip.stores.records import CollectionSchema
from callslip.stores.schemas import check_schema
from callslip.stores.sides import finishing, kind_of
from callslip.stores.transfer.archive_format import End
from callslip.stores.transfer.archive_reader import Archive
from callslip.stores.transfer.bundle import DocumentBundle, fault_of, grouped, put
from callslip.stores.transfer.checks import check_archive
from callslip.stores.transfer.counts import occupied, store_counts
from callslip.stores.transfer.move_lease import MoveLeaseKeeper, take
from callslip.stores.transfer.probes import Comparison, ask, best_of_both
from callslip.stores.transfer.purged import purged_ids
from callslip.stores.transfer.reports import Progress, Report


def import_archive(
    backend: Backend,
    path: Path,
    *,
    name: str | None,
    to: str | None,
    default: str,
    progress: Progress,
) -> Report:
    """Create the archive's collection under its own name or `name`, in the store `to`.

    Without `to`, the store is that of an existing collection of this name, or `default` if there is
    none. Raises ArchiveError if the archive is incomplete or damaged, and Conflict if another
    collection or document has the same name: then nothing was written. Raises MoveError if the
    store refuses a document, and CopyDiffers if the contents or search results of the imported
    collection differ from the archive's: then what was imported stays, and the next audit removes
    what the store has of other documents. Documents that were purged here are left out.
    """
    begun = time.monotonic()
    with closing(Archive(path)) as archive:
        end, head = archive.end(), archive.head
        schema = CollectionSchema(name or head.name, head.default, head.named, head.tenants)
        check_schema(schema)
        known: CollectionRecord | None = None
        with suppress(CollectionNotFound):
            known = backend.ledger.collections.writable(schema.name)
        kind = to or default
        if known is not None and to in (None, kind_of(known.store)):
            kind = known.store
        store = backend.store_of(kind)
        store.ping()
        for tenant in ("", *end.tenants):
            store.check_names(schema.name, tenant)
        purged = purged_ids(backend.blobs)
        check_archive(backend, archive, end, schema, purged)
        if known is None and occupied(store, schema.name):
            raise Conflict(
                f"store {kind!r} holds a collection {schema.name!r} that the ledger does not know",
                hint="Import under another name with --as, or into another store with --to.",
            )
        if known is not None and known.analyzer != head.analyzer:
            raise Conflict(
                f"collection {schema.name!r} has terms of analyzer {known.analyzer},"
                f" the archive's are of {head.analyzer}",
                hint="Import under another name with --as.",
            )
        backend.ledger.collections.create(
            schema,
            store=kind,
            embedder=head.embedder,
            analyzer=head.analyzer,
            options=None if known else head.options,
        )
        with _leased(backend, schema.name, kind) as lease, _ending(backend, lease):
            store.ensure_schema(schema)
            backend.ledger.collections.has_properties(schema.name, end.property_names)
            for tenant in filter(None, end.tenants):
                backend.ledger.tenants.create(schema.name, tenant)
                store.ensure_tenant(schema.name, tenant)
            importing = _Importing(backend, store, schema.name, head.embedder, progress, lease)
            importing.total = sum(counts["documents"] for counts in end.tenants.values())
            for group in grouped(importing.awaited(archive, end, schema, purged)):
                importing.take(group)
            return importing.report(end, time.monotonic() - begun)


@contextmanager
def _ending(backend: Backend, lease: MoveLeaseKeeper) -> Iterator[None]:
    """End the import at the end of the block, and at an error with which it cannot continue.

    Otherwise the same command continues it, and no audit of the collection runs until then.
    """
    try:
        yield
    except PermanentError:
        backend.ledger.moves.end(lease.move)
        raise
    backend.ledger.moves.end(lease.move)


def _leased(backend: Backend, name: str, kind: str) -> MoveLeaseKeeper:
    """Take the lease that prevents a move. Raises Conflict after an unfinished or recent move."""
    moves = backend.ledger.moves
    move = take(moves, name, kind)
    try:
        home = backend.ledger.collections.get(name).store
        if home != kind:
            raise Conflict(f"collection {name!r} was moved to store {home!r} just now")
        if move.switched or move.store != kind:
            command = finishing(name, home, move.store, switched=move.switched)
            raise Conflict(
                f"a move of collection {name!r} was broken off",
                hint=f"Finish it first: {command}",
            )
    except BaseException:
        moves.release(move)
        raise
    return MoveLeaseKeeper(moves, move)


class _Importing:
    def __init__(
        self,
        backend: Backend,
        store: Store,
        collection: str,
        embedder: str,
        progress: Progress,
        lease: MoveLeaseKeeper,
    ) -> None:
        self._backend, self._store, self._lease = backend, store, lease
        self._collection, self._embedder = collection, embedder
        self._progress, self.total = progress, 0
        self._documents = self._chunks = 0
        self._outcomes: Counter[str] = Counter()

    def awaited(
        self, archive: Archive, end: End, schema: CollectionSchema, purged: Collection[str]
    ) -> Iterator[DocumentBundle]:
        """Write the blobs of each missing or faulty document and yield it; count all others."""
        for entry in archive.entries():
            if not end.counts(entry.card):
                continue
            if entry.document_id in purged:
                self._outcomes["purged"] += 1
                self._progress(self.total, 0)
                continue
            bundle = entry.bundle(schema)
            standing = self._backend.ledger.transcripts.standing(
                self._collection, bundle.transcript
            )
            self._outcomes[standing] += 1
            if standing in ("newer", "deleted"):
                self._progress(self.total, 0)
            elif standing == "same" and not fault_of(self._store, self._collection, bundle):
                self._count(bundle)
            else:
                for name in entry.blob_names():
                    with entry.blob(name) as stream:
                        self._backend.blobs.write(entry.document_id, name, stream)
                yield bundle

    def take(self, group: list[DocumentBundle]) -> None:
        """Write documents of one tenant to the store, and the new ones to the ledger."""
        moves, kind = self._backend.ledger.moves, self._store.kind
        moves.note(self._collection, kind, {p.transcript.document_id: (0, 0) for p in group})
        put(self._store, self._collection, group, self._lease.check)
        for bundle in group:
            transcript = bundle.transcript
            if self._backend.ledger.transcripts.standing(self._collection, transcript) == "new":
                self._enter(bundle)
            else:
                moves.forget(self._collection, kind, transcript.document_id)
            self._count(bundle)

    def _count(self, bundle: DocumentBundle) -> None:
        self._documents += 1
        self._chunks += len(bundle.chunks)
        self._progress(self.total, len(bundle.chunks))

    def _enter(self, bundle: DocumentBundle) -> None:
        """Write the document's rows to the ledger, which makes it visible to searches.

        The embedding cache gets a vector only if the chunk's text has the hash of the transcript.
        """
        ledger, transcript = self._backend.ledger, bundle.transcript
        ledger.vectors.put(
            {
                (self._embedder, known.text_hash): chunk.vector
                for chunk in bundle.chunks
                if (known := transcript.chunks[chunk.chunk_id]).text_hash == text_hash(chunk.body)
            }
        )
        ledger.transcripts.write(self._collection, transcript, self._lease.move)

    def report(self, end: End, seconds: float) -> Report:
        """Compare the collection and the archive. Raises CopyDiffers if they differ."""
        ledger, kind = self._backend.ledger, self._store.kind
        here = ledger.transcripts.counts(self._collection)
        stored = store_counts(ledger, self._store, self._collection)
        tenants = {
            tenant: {
                **counts,
                "documents here": here.get(tenant, (0, 0))[0],
                "chunks here": here.get(tenant, (0, 0))[1],
                f"chunks in {kind}": stored.get(tenant, 0),
            }
            for tenant, counts in end.tenants.items()
        }
        notes = [
            f"{count} of its documents {what}"
            for what, count in (
                ("changed here since, and stay so", self._outcomes["newer"]),
                (
                    "deleted here since, and stay so;"
                    " to have them back, delete the collection and import again",
                    self._outcomes["deleted"],
                ),
                ("purged here, and left out", self._outcomes["purged"]),
            )
            if count
        ]
        comparison = Comparison()
        if notes or sum(documents for documents, _ in here.values()) != self._documents:
            notes.append("The collection is not what the archive was: probes were not compared.")
        else:
            self._compare(end, tenants, comparison)
        return Report(
            collection=self._collection,
            documents=self._documents,
            chunks=self._chunks,
            seconds=seconds,
            skipped=self._outcomes["same"],
            left_out=end.left_out,
            tenants=tenants,
            probes=comparison.as_json(),
            notes=notes,
        )

    def _compare(
        self, end: End, tenants: dict[str, dict[str, int]], comparison: Comparison
    ) -> None:
        ledger, kind = self._backend.ledger, self._store.kind
        for answered in end.probes:
            answers = dict(ask(ledger, self._store, self._collection, answered.probe))
            if end.keyword_score != self._store.keyword_score:
                answers.pop("keyword", None)
            wanted = {retriever: _here(ledger, ids) for retriever, ids in answered.answers.items()}
            best = best_of_both(self._store, self._collection, answered.probe, wanted, answers)
            comparison.add(answered.probe, wanted, answers, best)
        faults = [
            f"tenant {tenant!r} has {counts[f'chunks in {kind}']} chunks, not {counts['chunks']}"
            for tenant, counts in tenants.items()
            if counts["chunks"] != counts[f"chunks in {kind}"]
        ]
        if faults := faults + comparison.faults():
            raise CopyDiffers(f"store {kind!r} differs from the archive: {'; '.join(faults)}")


def _here(ledger: Ledger, chunk_ids: list[str]) -> list[str]:
    """The visible chunks among these: the source's answers may contain chunks added later."""
    visible = ledger.chunks.visible(chunk_ids)
    return [i for i in chunk_ids if i in visible]
