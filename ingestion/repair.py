"""Setting right what an audit found: what nobody knows goes, what is missing is written again.

What is missing is written by doing the steps of the live version again from the first whose
artifact is not kept, under the same leases as ever: a newer version or a deletion that comes
meanwhile wins, and a repair that is killed is finished by the sweep.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from callslip.errors import CollectionNotFound, TenantNotFound
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
        elif not finding.certain and not force:
            yield Repaired(finding, DOUBTFUL)
        elif finding.kind == "missing-files":
            yield Repaired(finding, SEND_AGAIN)
        elif finding.kind != "missing":
            _put_right(finding, use)
            yield Repaired(finding)
        elif finding.document_id not in seen:  # once for all halves
            seen.add(finding.document_id)
            yield Repaired(finding, _write_again(finding, use))


def _put_right(finding: Finding, use: Repairs) -> None:
    if finding.kind == "orphan-files":
        for document_id in finding.ids:
            use.blobs.delete(document_id)
        return
    store, name, tenant = use.stores[finding.store], finding.collection, finding.tenant
    with suppress(CollectionNotFound, TenantNotFound):  # it went meanwhile, which is as well
        match finding.kind:
            case "orphan-documents":
                for document_id in finding.ids:
                    store.delete_document(name, document_id, tenant=tenant)
            case "orphan-chunks":
                store.delete_chunks(name, finding.ids, tenant=tenant)
            case "unknown-tenant":
                store.drop_tenant(name, tenant)
            case "foreign-copy":
                store.drop_collection(name)
            case "missing-collection":
                store.ensure_schema(use.ledger.collections.get(name).schema)


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
    original = original_name(use.ledger.documents.version(document_id, version).sha256)
    made_of = first != "extract" or use.blobs.exists(document_id, original)
    made_alike = collection.embedder == use.embedder and not collection.schema.named
    if len(held) < len(ids) and made_of and made_alike:
        return first
    return "upsert" if held else None  # which takes what the store still has
