"""Compares every store with the ledger and finds unknown and missing objects.

The ledger records a chunk before a store has the chunk, and drops the record after no store has the
chunk. So the audit reads the store first and the ledger second, and reads each difference again in
the same order. A document that is added, changed or deleted meanwhile is therefore not a finding.

The audit has the ids of one scope of one store in memory: about 150 bytes for each id in each index
of the store, 0.3 GB for a million chunks. It reads the ledger in pages.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from callslip.errors import CallslipError, CollectionNotFound, SettingsError, TenantNotFound
from callslip.stores.contract import Store
from callslip.stores.ledger import CollectionRecord, Item, Ledger

Kind = Literal[
    "missing",
    "missing-collection",
    "missing-files",
    "orphan-chunks",
    "orphan-documents",
    "orphan-files",
    "unknown-tenant",
    "unknown-collection",
    "foreign-copy",
    "broken-place",
]

FEW = 10
"""This many orphaned documents count as leftovers, even if the ledger has few documents."""

HALVES = ("vector", "keyword")
"""The indexes that must contain every live chunk, beside those of vectors that have an embedder.

The index of a vector that clients provide contains only the chunks with such a vector.
"""


@dataclass(frozen=True)
class Finding:
    """A difference from the ledger.

    `half` and `document_id` name the index and the document that lack chunks; `half` is `document`
    if the document's record is missing, and `original` or `text` for a missing file. `ids` are ids
    of chunks or of documents. If not `certain`, the object may belong to another installation or
    the ledger may be an old one, so a person must decide. `detail` is the error of a scope that its
    store cannot read.
    """

    kind: Kind
    store: str
    collection: str = ""
    tenant: str = ""
    document_id: str = ""
    half: str = ""
    ids: tuple[str, ...] = ()
    certain: bool = True
    detail: str = ""


@dataclass(frozen=True)
class AuditScope:
    """A collection or one of its tenants, and the store of the collection."""

    collection: CollectionRecord
    tenant: str
    store: Store

    @property
    def name(self) -> str:
        """The name of the collection."""
        return self.collection.name


@dataclass(frozen=True)
class ScopeReport:
    """The audit of a scope: the findings, and counts from the ledger and the store.

    `documents` and `chunks` are the live ones in the ledger, `stored` the chunks in each index of
    the store. `skipped` documents are being added, changed or deleted at the moment.
    """

    collection: str
    tenant: str
    store: str
    documents: int
    chunks: int
    stored: Mapping[str, int]
    skipped: int
    findings: tuple[Finding, ...]


Progress = Callable[[int], None]
"""Called with the number of documents compared since the last call."""


def audit_scopes(
    ledger: Ledger, stores: Mapping[str, Store], only: str | None = None
) -> list[AuditScope]:
    """All scopes of the ledger, and tenants that only a store knows.

    Omits collections that a move or an import is writing, and attached tables, whose rows are not
    in the ledger. Raises SettingsError if a collection is in a store that is not set up, and
    CollectionNotFound for an unknown `only`.
    """
    records = [record for record, _ in ledger.collections.all() if only in (None, record.name)]
    if only is not None and not records:
        records = [ledger.collections.get(only)]
    scopes = []
    for record in records:
        if record.attached or ledger.inventory.moving(record.name):
            continue
        if record.store not in stores:
            raise SettingsError(
                f"Collection {record.name} is stored in {record.store}, which is not set up here.",
                hint=f"Start `callslip up`, or set the {record.store} settings.",
            )
        store = stores[record.store]
        tenants = [""]
        if record.schema.tenants:
            tenants = _tenants_of(ledger, store, record.name)
        scopes += [AuditScope(record, tenant, store) for tenant in tenants]
    return scopes


def audit_scope(
    ledger: Ledger, scope: AuditScope, progress: Progress = lambda _: None
) -> ScopeReport:
    """Compare one scope with the ledger. A scope that its store cannot read is a finding."""
    try:
        return _audit_scope(ledger, scope, progress)
    except CallslipError as error:
        broken = broken_scope(scope.store, _at(scope, "broken-place"), error)
        numbers = ledger.transcripts.counts(scope.name).get(scope.tenant, (0, 0))
        return ScopeReport(scope.name, scope.tenant, scope.store.kind, *numbers, {}, 0, (broken,))


def broken_scope(store: Store, finding: Finding, error: CallslipError) -> Finding:
    """The finding with the error as its detail. Raises StoreDown if the store does not answer."""
    store.ping()
    return replace(finding, certain=False, detail=f"{error.detail} {error.advice}".strip())


def _audit_scope(ledger: Ledger, scope: AuditScope, progress: Progress) -> ScopeReport:
    scope.store.forget(scope.name)
    stored, documents = _stored(scope)
    unknown: set[str] = set().union(*stored.values())
    strangers = set(documents)
    suspects: dict[str, Item] = {}
    known = chunks = live = skipped = 0
    for page in ledger.inventory.pages(scope.name, scope.tenant):
        records = _records(scope, [item.document_id for item in page])
        for item in page:
            known += 1
            live += bool(item.live)
            chunks += len(item.live)
            skipped += not item.settled
            unknown -= item.known
            strangers.discard(item.document_id)
            if item.settled and _lacking(scope, item, stored, records):
                suspects[item.document_id] = item
        progress(len(page))
    numbers = {half: len(ids) for half, ids in stored.items()}
    findings = list(_whole_scope(ledger, scope, documents))
    if unknown or strangers or suspects:
        stored, documents = _stored(scope)
        unknown &= set().union(*stored.values())
        unknown -= ledger.inventory.chunks(scope.name, scope.tenant, unknown)
        strangers &= documents
        strangers -= ledger.inventory.documents(scope.name, scope.tenant, strangers)
        certain = len(strangers) <= max(FEW, known)
        findings += _orphans(scope, "orphan-documents", strangers, certain)
        findings += _orphans(scope, "orphan-chunks", unknown, certain)
        records = _records(scope, list(suspects))
        again = ledger.inventory.items(list(suspects))
        for document_id, item in suspects.items():
            if again.get(document_id) != item:
                skipped += 1
                continue
            for half, ids in _lacking(scope, item, stored, records).items():
                findings.append(_at(scope, "missing", document_id=document_id, half=half, ids=ids))
    return ScopeReport(
        scope.name,
        scope.tenant,
        scope.store.kind,
        live,
        chunks,
        numbers,
        skipped,
        tuple(findings),
    )


def _stored(scope: AuditScope) -> tuple[dict[str, set[str]], set[str]]:
    """The ids of the chunks in each index, and of the documents; empty if the scope is missing."""
    halves: dict[str, set[str]] = {half: set() for half in _halves(scope)}
    documents: set[str] = set()
    with suppress(CollectionNotFound, TenantNotFound):
        halves |= scope.store.chunk_ids(scope.name, tenant=scope.tenant)
        documents = scope.store.document_ids(scope.name, tenant=scope.tenant)
    return halves, documents


def _halves(scope: AuditScope) -> tuple[str, ...]:
    return (*HALVES, *(f"vector:{name}" for name in scope.collection.schema.embedders))


def _records(scope: AuditScope, document_ids: list[str]) -> set[str]:
    with suppress(CollectionNotFound, TenantNotFound):
        records = scope.store.get_documents(scope.name, document_ids, tenant=scope.tenant)
        return {record.document_id for record in records}
    return set()


def _lacking(
    scope: AuditScope, item: Item, stored: Mapping[str, set[str]], records: set[str]
) -> dict[str, Iterable[str]]:
    """The ids that a live document lacks, by index; `document` if its record is missing."""
    if item.live_version is None:
        return {}
    lacking: dict[str, Iterable[str]] = {half: item.live - stored[half] for half in _halves(scope)}
    if item.document_id not in records:
        lacking["document"] = [item.document_id]
    return {half: ids for half, ids in lacking.items() if ids}


def _whole_scope(ledger: Ledger, scope: AuditScope, documents: set[str]) -> Iterable[Finding]:
    """Find a collection that is missing in its store, or a tenant that only the store knows."""
    if scope.name not in scope.store.collections():
        with suppress(CollectionNotFound):
            ledger.collections.get(scope.name)  # it may have been deleted meanwhile
            yield _at(scope, "missing-collection")
    elif (
        scope.tenant
        and scope.tenant in _tenants(scope.store, scope.name)
        and scope.tenant not in ledger.tenants.names(scope.name)
    ):
        yield _at(scope, "unknown-tenant", certain=len(documents) <= FEW)


def _orphans(scope: AuditScope, kind: Kind, ids: set[str], certain: bool) -> list[Finding]:
    return [_at(scope, kind, ids=ids, certain=certain)] if ids else []


def _at(
    scope: AuditScope,
    kind: Kind,
    *,
    document_id: str = "",
    half: str = "",
    ids: Iterable[str] = (),
    certain: bool = True,
) -> Finding:
    where = (scope.store.kind, scope.name, scope.tenant)
    return Finding(kind, *where, document_id, half, sorted_ids(ids), certain)


def _tenants_of(ledger: Ledger, store: Store, collection: str) -> list[str]:
    """The ledger's tenants, and those that only the store knows."""
    try:
        stored = _tenants(store, collection)
    except CallslipError:  # the audit of each tenant reports it
        return ledger.tenants.all(collection) or [""]
    known = set(ledger.tenants.all(collection))
    leaving = ledger.tenants.names(collection) - known
    return sorted(known | (stored - leaving))


def _tenants(store: Store, collection: str) -> set[str]:
    with suppress(CollectionNotFound):
        store.forget(collection)
        return set(store.tenants(collection))
    return set()


def sorted_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """Ids in the form of `Finding.ids`."""
    return tuple(sorted(ids))
