"""Comparing every store with the ledger: what nobody knows, and what is missing.

The ledger names a chunk before a store has it, and forgets it after no store has it. So a store is
read first and the ledger after it, and what looks wrong is read once more, the store first again:
a document that comes, changes or goes meanwhile is no finding.

Held in memory are the ids that one store holds of one collection or one of its tenants: about 150
bytes for each id in each half, .3 GB at a million chunks. The ledger is read in pages.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from callslip.errors import CallslipError, CollectionNotFound, SettingsError, TenantNotFound
from stores.contract import Store
from stores.ledger import CollectionRecord, Item, Ledger

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
"""Orphaned documents that are taken for leftovers, however little the ledger knows."""

HALVES = ("vector", "keyword")
"""What must hold every live chunk; a half of a named vector holds only those that have one."""


@dataclass(frozen=True)
class Finding:
    """Something that is not as the ledger says.

    `half` and `document_id` say where chunks are missing; `half` is `document` where its record is,
    of files `original` or `text`. `ids` are those of chunks, or of documents. Not `certain`: it may
    not be ours to remove, or the ledger may be an old one, so a person must decide. `detail` is the
    error of a place that its store cannot be asked for.
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
class Place:
    """A collection, or a tenant of it, in the store that it is kept in."""

    collection: CollectionRecord
    tenant: str
    store: Store

    @property
    def name(self) -> str:
        """Of the collection."""
        return self.collection.name


@dataclass(frozen=True)
class Look:
    """What was found at a place: numbers of the ledger, objects held, what is wrong.

    `skipped` documents come, change or go just now.
    """

    collection: str
    tenant: str
    store: str
    documents: int
    chunks: int
    held: Mapping[str, int]
    skipped: int
    findings: tuple[Finding, ...]


Progress = Callable[[int], None]
"""Told how many more documents were compared."""


def places(ledger: Ledger, stores: Mapping[str, Store], only: str | None = None) -> list[Place]:
    """Where everything should be, and tenants that only a store knows.

    Left out are collections that a move or an import is writing to, and tables of somebody else,
    of which the ledger knows nothing. SettingsError where a
    collection is kept in a store that is not set up; CollectionNotFound for an unknown `only`.
    """
    records = [record for record, _ in ledger.collections.all() if only in (None, record.name)]
    if only is not None and not records:
        records = [ledger.collections.get(only)]
    found = []
    for record in records:
        if record.attached or ledger.inventory.moving(record.name):
            continue
        if record.store not in stores:
            raise SettingsError(
                f"Collection {record.name} is kept in {record.store}, which is not set up here.",
                hint=f"Start `callslip up`, or set the {record.store} settings.",
            )
        store = stores[record.store]
        tenants = [""]
        if record.schema.tenants:
            tenants = _tenants_of(ledger, store, record.name)
        found += [Place(record, tenant, store) for tenant in tenants]
    return found


def look(ledger: Ledger, place: Place, progress: Progress = lambda _: None) -> Look:
    """Compare one place with the ledger; one that its store cannot be asked for is a finding."""
    try:
        return _look(ledger, place, progress)
    except CallslipError as error:
        broken = broken_place(place.store, _at(place, "broken-place"), error)
        numbers = ledger.transcripts.counts(place.name).get(place.tenant, (0, 0))
        return Look(place.name, place.tenant, place.store.kind, *numbers, {}, 0, (broken,))


def broken_place(store: Store, found: Finding, error: CallslipError) -> Finding:
    """The finding with its reason. Raises StoreDown where the store answers nothing at all."""
    store.ping()
    return replace(found, certain=False, detail=f"{error.detail} {error.advice}".strip())


def _look(ledger: Ledger, place: Place, progress: Progress) -> Look:
    place.store.forget(place.name)
    held, documents = _held(place)
    unknown: set[str] = set().union(*held.values())
    strangers = set(documents)
    suspects: dict[str, Item] = {}
    known = chunks = live = skipped = 0
    for page in ledger.inventory.pages(place.name, place.tenant):
        records = _records(place, [item.document_id for item in page])
        for item in page:
            known += 1
            live += bool(item.live)
            chunks += len(item.live)
            skipped += not item.settled
            unknown -= item.known
            strangers.discard(item.document_id)
            if item.settled and _lacking(item, held, records):
                suspects[item.document_id] = item
        progress(len(page))
    numbers = {half: len(ids) for half, ids in held.items()}
    findings = list(_whole_places(ledger, place, documents))
    if unknown or strangers or suspects:
        held, documents = _held(place)
        unknown &= set().union(*held.values())
        unknown -= ledger.inventory.chunks(place.name, place.tenant, unknown)
        strangers &= documents
        strangers -= ledger.inventory.documents(place.name, place.tenant, strangers)
        certain = len(strangers) <= max(FEW, known)
        findings += _orphans(place, "orphan-documents", strangers, certain)
        findings += _orphans(place, "orphan-chunks", unknown, certain)
        records = _records(place, list(suspects))
        again = ledger.inventory.items(list(suspects))
        for document_id, item in suspects.items():
            if again.get(document_id) != item:
                skipped += 1
                continue
            for half, ids in _lacking(item, held, records).items():
                findings.append(_at(place, "missing", document_id=document_id, half=half, ids=ids))
    return Look(
        place.name,
        place.tenant,
        place.store.kind,
        live,
        chunks,
        numbers,
        skipped,
        tuple(findings),
    )


def _held(place: Place) -> tuple[dict[str, set[str]], set[str]]:
    """Ids of the chunks that each half holds, and of the documents; none where nothing is."""
    halves: dict[str, set[str]] = {half: set() for half in HALVES}
    documents: set[str] = set()
    with suppress(CollectionNotFound, TenantNotFound):
        halves |= place.store.chunk_ids(place.name, tenant=place.tenant)
        documents = place.store.document_ids(place.name, tenant=place.tenant)
    return halves, documents


def _records(place: Place, document_ids: list[str]) -> set[str]:
    with suppress(CollectionNotFound, TenantNotFound):
        found = place.store.get_documents(place.name, document_ids, tenant=place.tenant)
        return {record.document_id for record in found}
    return set()


def _lacking(
    item: Item, held: Mapping[str, set[str]], records: set[str]
) -> dict[str, Iterable[str]]:
    """What a document should have and has not, by half."""
    if item.live_version is None:
        return {}
    lacking: dict[str, Iterable[str]] = {half: item.live - held[half] for half in HALVES}
    if item.document_id not in records:
        lacking["document"] = [item.document_id]
    return {half: ids for half, ids in lacking.items() if ids}


def _whole_places(ledger: Ledger, place: Place, documents: set[str]) -> Iterable[Finding]:
    """A collection that is not in its store; a tenant that only the store knows."""
    if place.name not in place.store.collections():
        with suppress(CollectionNotFound):
            ledger.collections.get(place.name)  # it may have been deleted meanwhile
            yield _at(place, "missing-collection")
    elif (
        place.tenant
        and place.tenant in _tenants(place.store, place.name)
        and place.tenant not in ledger.tenants.names(place.name)
    ):
        yield _at(place, "unknown-tenant", certain=len(documents) <= FEW)


def _orphans(place: Place, kind: Kind, ids: set[str], certain: bool) -> list[Finding]:
    return [_at(place, kind, ids=ids, certain=certain)] if ids else []


def _at(
    place: Place,
    kind: Kind,
    *,
    document_id: str = "",
    half: str = "",
    ids: Iterable[str] = (),
    certain: bool = True,
) -> Finding:
    where = (place.store.kind, place.name, place.tenant)
    return Finding(kind, *where, document_id, half, told(ids), certain)


def _tenants_of(ledger: Ledger, store: Store, collection: str) -> list[str]:
    """The ledger's tenants, and those that only the store knows."""
    try:
        held = _tenants(store, collection)
    except CallslipError:  # which the look at each of them tells
        return ledger.tenants.all(collection) or [""]
    known = set(ledger.tenants.all(collection))
    leaving = ledger.tenants.names(collection) - known
    return sorted(known | (held - leaving))


def _tenants(store: Store, collection: str) -> set[str]:
    with suppress(CollectionNotFound):
        store.forget(collection)
        return set(store.tenants(collection))
    return set()


def told(ids: Iterable[str]) -> tuple[str, ...]:
    """Ids as a finding has them."""
    return tuple(sorted(ids))
