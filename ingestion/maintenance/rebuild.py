"""Fills the stores of a restored installation, and compares their answers with the backup's.

The chunks of a live document are made of its steps' artifacts, as in the upsert step, or taken from
the backup where these do not yield them. Nothing is embedded anew. Each document is compared with
its store after it was written; a document that its store has already is not written again.
"""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress

from callslip.errors import CallslipError, TenantNotFound
from callslip.ingestion.artifacts import ENRICHED, EXTRACTED, VECTORS, Artifact, T
from callslip.ingestion.maintenance.purge import Turns, repeat
from callslip.ingestion.records import made
from callslip.messages.options import Options
from callslip.stores.audit.comparison import HALVES
from callslip.stores.backend import Backend
from callslip.stores.backup.destination import Destination
from callslip.stores.backup.making import PURGES, Progress
from callslip.stores.backup.manifest import Manifest, Probes
from callslip.stores.backup.restoring import (
    Copied,
    Restored,
    copies,
    finish,
    receipts,
    restore_data,
    sound,
)
from callslip.stores.contract import Store
from callslip.stores.ledger import CollectionRecord, Ledger, Step, Transcript
from callslip.stores.records import for_audience
from callslip.stores.transfer.bundle import DocumentBundle, fault_of, grouped, put
from callslip.stores.transfer.probes import Comparison, ask, best_of_both


def restore(
    backend: Backend,
    turns: Turns,
    destination: Destination,
    name: str,
    *,
    to: str,
    only: frozenset[str],
    progress: Progress = lambda _phase, _done: None,
) -> Restored:
    """Restore a backup into an empty installation, or continue a restore that was killed.

    Collections of a store whose kind is not among `only` go to the store `to`. Purges since the
    backup are repeated. Raises what `restore_data` raises.
    """
    with sound(name):
        return _restored(backend, turns, destination, name, to, only, progress)


def _restored(
    backend: Backend,
    turns: Turns,
    destination: Destination,
    name: str,
    to: str,
    only: frozenset[str],
    progress: Progress,
) -> Restored:
    began = time.monotonic()
    manifest, report = restore_data(
        backend, turns, destination, name, to=to, only=only, progress=progress
    )
    for receipt_name, receipt in receipts(destination, manifest.began_at):
        repeat(backend, turns, receipt)
        backend.blobs.write(PURGES, receipt_name, json.dumps(receipt).encode())
        report.purged += 1
    fill_stores(backend, destination, manifest, report, progress)
    report.lost = sorted({*report.lost, *manifest.missing})
    finish(backend)
    report.seconds = time.monotonic() - began
    return report


def fill_stores(
    backend: Backend,
    destination: Destination,
    manifest: Manifest,
    report: Restored,
    progress: Progress = lambda _phase, _done: None,
) -> None:
    """Write every live document into its store, then compare counts and probe queries.

    Differences are added to the report's faults, documents without their data to its `lost`.
    """
    ledger = backend.ledger
    collections = [each for each, _ in ledger.collections.all() if not each.attached]
    for collection in collections:
        store = backend.store_of(collection.store)
        store.ensure_schema(collection.schema)
        for tenant in ledger.tenants.all(collection.name) if collection.schema.tenants else ():
            store.ensure_tenant(collection.name, tenant)
        for group in grouped(_lacking(backend, store, collection, progress)):
            put(store, collection.name, group, lambda: None)
    _write_copies(backend, destination, manifest, report)
    for collection in collections:
        store = backend.store_of(collection.store)
        store.maintain()
        _compare(backend, store, collection, manifest.probes.get(collection.name), report)


def _of_artifacts(
    backend: Backend, transcript: Transcript, options: Options
) -> DocumentBundle | None:
    """The document as its artifacts make it; None if they do not yield the ledger's chunks."""
    document_id = transcript.document_id
    names = backend.ledger.inventory.artifacts(document_id, transcript.live_version)
    version = backend.ledger.documents.version(document_id, transcript.live_version)

    def load(step: Step, kind: Artifact[T]) -> T:
        return kind.load(backend.blobs.read(document_id, names[step]))

    try:
        extracted, enriched = load("extract", EXTRACTED), load("enrich", ENRICHED)
        vectors = load("embed", VECTORS)
    except (KeyError, FileNotFoundError):
        return None
    record, chunks = made(
        version, extracted, enriched, vectors, created_at=transcript.created_at, options=options
    )
    if {chunk.chunk_id for chunk in chunks} != transcript.chunks.keys():
        return None
    record, chunks = for_audience(transcript.audience, record, chunks)
    return DocumentBundle(transcript, record, tuple(chunks))


def _lacking(
    backend: Backend, store: Store, collection: CollectionRecord, progress: Progress
) -> Iterator[DocumentBundle]:
    """The documents made of artifacts that the store lacks."""
    ledger, after = backend.ledger, ""
    while page := ledger.transcripts.ids(collection.name, after=after):
        after = page[-1][0]
        for document_id, _ in page:
            snapshot = ledger.transcripts.read(document_id)
            bundle = snapshot and _of_artifacts(backend, snapshot.transcript, collection.options)
            if bundle and fault_of(store, collection.name, bundle):
                yield bundle
        progress("stores", len(page))


def _write_copies(
    backend: Backend, destination: Destination, manifest: Manifest, report: Restored
) -> None:
    """Write the documents whose chunks the backup has itself."""
    ledger = backend.ledger
    for copied in copies(destination, manifest):
        snapshot = ledger.transcripts.read(copied.record.document_id)
        if snapshot is None:
            continue  # deleted or purged
        transcript = snapshot.transcript
        name = ledger.documents.get(transcript.document_id).collection
        store = backend.store_of(ledger.collections.get(name).store)
        bundle = _as_in_ledger(transcript, copied)
        if fault_of(store, name, bundle):
            put(store, name, [bundle], lambda: None)


def _as_in_ledger(transcript: Transcript, copied: Copied) -> DocumentBundle:
    """The chunks that the ledger's rows know; others were added while the backup was made."""
    chunks = [c for c in copied.chunks if c.chunk_id in transcript.chunks]
    record, chunks = for_audience(transcript.audience, copied.record, chunks)
    return DocumentBundle(transcript, record, tuple(chunks))


def _compare(
    backend: Backend,
    store: Store,
    collection: CollectionRecord,
    probes: Probes | None,
    report: Restored,
) -> None:
    ledger, name = backend.ledger, collection.name
    _compare_counts(ledger, store, name, report)
    comparison = Comparison()
    for answered in probes.answers if probes else ():
        try:
            answers = dict(ask(ledger, store, name, answered.probe))
            if probes and probes.keyword_score != store.keyword_score:
                answers.pop("keyword", None)
            wanted = _visible(ledger, answered.answers)
            best = best_of_both(store, name, answered.probe, wanted, answers)
        except CallslipError as error:
            report.faults.append(f"a probe query of {name} fails: {error.detail}")
            continue
        comparison.add(answered.probe, wanted, answers, best)
    report.probes[name] = comparison.as_json()
    report.faults += [f"{name}: {fault}" for fault in comparison.faults()]


def _compare_counts(ledger: Ledger, store: Store, name: str, report: Restored) -> None:
    """Compare the numbers of chunks in each half, and name the documents that lack chunks."""
    known = {tenant: chunks for tenant, (_, chunks) in ledger.transcripts.counts(name).items()}
    faults = []
    for tenant in ledger.tenants.all(name) if ledger.collections.get(name).schema.tenants else [""]:
        stored: dict[str, set[str]] = {}
        with suppress(TenantNotFound):
            stored = store.chunk_ids(name, tenant=tenant)
        report.chunks += len(stored.get("vector", ()))
        scope, due = f"{name}, tenant {tenant}" if tenant else name, known.get(tenant, 0)
        for half in HALVES:
            if (count := len(stored.get(half, ()))) != due:
                faults.append(f"{scope}: the {half} half has {count} chunks, the ledger {due}")
    report.faults += faults
    after = ""
    while faults and (page := ledger.transcripts.ids(name, after=after)):
        after = page[-1][0]
        for document_id, _ in page:
            tenant = ledger.documents.get(document_id).tenant
            live = ledger.chunks.live_ids(document_id)
            with suppress(TenantNotFound):
                stored = store.chunk_ids(name, document_id, tenant=tenant)
                live -= stored["vector"] & stored["keyword"]
            if live:
                report.lost.append(document_id)


def _visible(ledger: Ledger, answers: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The answers without chunks that were added after the ledger's rows were read."""
    ids = {chunk_id for hits in answers.values() for chunk_id in hits}
    visible = ledger.chunks.visible(sorted(ids))
    return {name: [i for i in hits if i in visible] for name, hits in answers.items()}
