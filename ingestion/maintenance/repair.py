"""Repairs the findings of an audit: removes orphans, and writes missing objects again.

Missing objects are written by repeating the steps of the live version, from the first step whose
artifact is not stored. The steps run under the usual leases: a newer version or a deletion
overrides the repair, and the sweep finishes a repair that was killed. Objects are checked once more
directly before they are removed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from callslip.errors import CollectionNotFound, DocumentNotFound, TenantNotFound
from callslip.ingestion.maintenance.orphans import put_right, remove_files
from callslip.ingestion.provided_chunks import has_provided_chunks
from callslip.stores.audit.comparison import Finding
from callslip.stores.blobs import Blobs, original_name
from callslip.stores.contract import Store
from callslip.stores.ledger import STEPS, DocumentRecord, Ledger, Step

Again = Callable[[str, int, Step], None]
"""Takes a document id, a version and a step; runs or queues the steps from that step on."""

MOVING = "it is changing; the next audit compares it again"
LOST = (
    "its source data is not stored, or another model embedded it: delete the document and"
    " ingest it again"
)
SEND_AGAIN = "send the same files again under their names: callslip ingest --again"
BROKEN = "nothing was removed: read the error, then audit again"
NOT_OURS = "if no other installation owns it, remove it with the store's own tools"
DOUBTFUL = (
    "the ledger may be older than the store, or the store shared: look closely, then repair with"
    " --force"
)


@dataclass(frozen=True)
class Repairs:
    """The resources of a repair.

    `embedder` is the model for new vectors, `further` the models for those of named vectors.
    """

    ledger: Ledger
    stores: Mapping[str, Store]
    blobs: Blobs
    embedder: str
    again: Again
    further: Collection[str] = ()


@dataclass(frozen=True)
class Repaired:
    """The result for a finding; `left` says why the finding remains, and what to do."""

    finding: Finding
    left: str = ""


def repair(findings: Iterable[Finding], use: Repairs, *, force: bool = False) -> Iterator[Repaired]:
    """Repair the findings one after the other; with `force` also those that are not certain."""
    seen: set[str] = set()
    for finding in findings:
        if finding.kind == "unknown-collection":
            yield Repaired(finding, NOT_OURS)
        elif finding.kind == "broken-place":
            yield Repaired(finding, BROKEN)
        elif not finding.certain and not force:
            yield Repaired(finding, DOUBTFUL)
        elif finding.kind == "missing-files":
            yield Repaired(finding, _extract_again(finding, use))
        elif finding.kind == "orphan-files":
            yield Repaired(finding, "" if remove_files(finding, use.ledger, use.blobs) else MOVING)
        elif finding.kind != "missing":
            right = put_right(finding, use.ledger, use.stores[finding.store])
            yield Repaired(finding, "" if right else MOVING)
        elif finding.document_id not in seen:  # one repair for all stores of the document
            seen.add(finding.document_id)
            yield Repaired(finding, _write_again(finding, use))


def _extract_again(finding: Finding, use: Repairs) -> str:
    """Repeat a version's steps from its original, if only its text is lost."""
    if finding.half != "text":
        return SEND_AGAIN
    left = ""
    for document_id in finding.ids:
        left = _text_again(document_id, use) or left
    return left


def _text_again(document_id: str, use: Repairs) -> str:
    with suppress(DocumentNotFound):
        document = use.ledger.documents.get(document_id)
        version = document.live_version
        if version is None or document.deleted_at is not None:
            return MOVING
        if not _can_make(document, version, "extract", use):
            return LOST
        if use.ledger.leases.reopen(document_id, version, "extract"):
            use.again(document_id, version, "extract")
            return ""
    return MOVING


def _write_again(finding: Finding, use: Repairs) -> str:
    with suppress(DocumentNotFound):
        document = use.ledger.documents.get(finding.document_id)
        version = document.live_version
        if version is None or document.deleted_at is not None:
            return MOVING
        first = _first_step(document, version, use, named=finding.half.startswith("vector:"))
        if first is None:
            return LOST
        if use.ledger.leases.reopen(document.document_id, version, first):
            use.again(document.document_id, version, first)
            return ""
    return MOVING


def _first_step(
    document: DocumentRecord, version: int, use: Repairs, *, named: bool
) -> Step | None:
    """Return the first step to repeat; None if no step has its input.

    Vectors are never made by other models than the collection's. `named` says that a named vector
    is missing, which cannot come from what the store still has.
    """
    document_id = document.document_id
    artifacts = use.ledger.inventory.artifacts(document_id, version)
    present = [s in artifacts and use.blobs.exists(document_id, artifacts[s]) for s in STEPS[:-1]]
    if all(present):
        return "upsert"
    collection = use.ledger.collections.get(document.collection)
    ids, stored = sorted(use.ledger.chunks.live_ids(document_id)), []
    with suppress(CollectionNotFound, TenantNotFound):
        stored = use.stores[collection.store].get_chunks(
            document.collection, ids, tenant=document.tenant
        )
    first = STEPS[present.index(False)]
    if (named or len(stored) < len(ids)) and _can_make(document, version, first, use):
        return first
    return (
        "upsert" if stored and not named else None
    )  # the step reads the chunks that the store still has


def _can_make(document: DocumentRecord, version: int, first: Step, use: Repairs) -> bool:
    """Whether the steps from this one can be repeated with the same result."""
    collection = use.ledger.collections.get(document.collection)
    if has_provided_chunks(use.ledger, document.document_id):
        return False
    original = original_name(use.ledger.documents.version(document.document_id, version).sha256)
    made_of = first != "extract" or use.blobs.exists(document.document_id, original)
    named = collection.schema.named.values()
    models = all(spec.embedder in use.further for spec in named)
    return made_of and models and collection.embedder == use.embedder
