"""Setting right what an audit found: what nobody knows goes, what is missing is written again.

What is missing is written by doing the steps of the live version again from the first whose
artifact is not kept, under the same leases as ever: a newer version or a deletion that comes
meanwhile wins, and a repair that is killed is finished by the sweep. What goes is looked at once
more, right before.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from callslip.errors import CollectionNotFound, DocumentNotFound, TenantNotFound
from ingestion.given import is_given
from ingestion.removal import put_right, remove_files
from stores.audit import Finding
from stores.blobs import Blobs, original_name
from stores.contract import Store
from stores.ledger import STEPS, DocumentRecord, Ledger, Step

Again = Callable[[str, int, Step], None]
"""Does, or queues, the steps of a version (document id, version) from this one on."""

MOVING = "it changes just now; the next audit looks again"
LOST = (
    "what it was made of is kept nowhere, or another model embedded it: delete the document and"
    " ingest it again"
)
SEND_AGAIN = "send the same files again under their names"
BROKEN = "nothing was removed: see what the error says, then audit again"
NOT_OURS = "if it is no other installation's, remove it by the store's own means"
DOUBTFUL = (
    "the ledger may be older than the store, or the store shared: look closely, then repair with"
    " --force"
)


@dataclass(frozen=True)
class Repairs:
    """What may be used to repair. `embedder` is the model that new vectors would be made by."""

    ledger: Ledger
    stores: Mapping[str, Store]
    blobs: Blobs
    embedder: str
    again: Again


@dataclass(frozen=True)
class Repaired:
    """What became of a finding; `left` says why it stands, and what to do."""

    finding: Finding
    left: str = ""


def repair(findings: Iterable[Finding], use: Repairs, *, force: bool = False) -> Iterator[Repaired]:
    """Repair one finding after the other; with `force` also those that are not certain."""
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
        elif finding.document_id not in seen:  # once for all halves
            seen.add(finding.document_id)
            yield Repaired(finding, _write_again(finding, use))


def _extract_again(finding: Finding, use: Repairs) -> str:
    """Do a version's steps again from its original, where only its text is lost."""
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
    document = use.ledger.documents.get(finding.document_id)
    version = document.live_version
    if version is None or document.deleted_at is not None:
        return MOVING
    first = _first_step(document, version, use)
    if first is None:
        return LOST
    if not use.ledger.leases.reopen(document.document_id, version, first):
        return MOVING
    use.again(document.document_id, version, first)
    return ""


def _first_step(document: DocumentRecord, version: int, use: Repairs) -> Step | None:
    """The first step to be done again; None where nothing is left to do it from.

    Vectors of another model than the collection's are never made, and named ones cannot be.
    """
    document_id = document.document_id
    artifacts = use.ledger.inventory.artifacts(document_id, version)
    kept = [s in artifacts and use.blobs.exists(document_id, artifacts[s]) for s in STEPS[:-1]]
    if all(kept):
        return "upsert"
    collection = use.ledger.collections.get(document.collection)
    ids, held = sorted(use.ledger.chunks.live_ids(document_id)), []
    with suppress(CollectionNotFound, TenantNotFound):
        held = use.stores[collection.store].get_chunks(
            document.collection, ids, tenant=document.tenant
        )
    first = STEPS[kept.index(False)]
    if len(held) < len(ids) and _can_make(document, version, first, use):
        return first
    return "upsert" if held else None  # which takes what the store still has


def _can_make(document: DocumentRecord, version: int, first: Step, use: Repairs) -> bool:
    """Whether the steps from this one on can be done again, and give what they gave."""
    collection = use.ledger.collections.get(document.collection)
    if is_given(use.ledger, document.document_id):
        return False
    original = original_name(use.ledger.documents.version(document.document_id, version).sha256)
    made_of = first != "extract" or use.blobs.exists(document.document_id, original)
    return made_of and collection.embedder == use.embedder and not collection.schema.named
