"""Removes orphans that an audit found, after a second check that they are still orphans.

The check and the removal run under the lease of the collection's move and while no upsert of the
collection runs, so that no process moves the collection or imports into it at the same time.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from callslip.errors import CollectionNotFound, Conflict, LeaseLost, TenantNotFound
from callslip.stores.audit.comparison import Finding, sorted_ids
from callslip.stores.audit.orphans import all_documents, ownerless
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger
from callslip.stores.transfer.move_lease import LEASE_SECONDS, MoveLeaseKeeper

UPSERT_SECONDS = 10.0
"""The maximum time to wait for the end of running upserts."""

IDS_PER_LOOK = 50
"""The number of objects that are removed after each check with the ledger."""


def remove_files(finding: Finding, ledger: Ledger, blobs: Blobs) -> bool:
    """Remove files of documents that are not in the ledger.

    Returns False if files were left, because their document is in the ledger or they are new.
    """
    gone = set()
    for document_id in finding.ids:
        if ownerless(ledger, blobs, {document_id}):
            blobs.delete(document_id)
            gone.add(document_id)
    return gone == set(finding.ids)


def put_right(finding: Finding, ledger: Ledger, store: Store) -> bool:
    """Remove objects that should not be in the store, or create the collection that it lacks.

    Returns False if objects were left, because they are in use now or the collection is changing.
    """
    try:
        with upserts_paused(ledger, finding.collection) as hold:
            store.forget(finding.collection)
            return _removed(finding, ledger, store, hold)
    except (CollectionNotFound, Conflict, LeaseLost):
        return False


def _removed(finding: Finding, ledger: Ledger, store: Store, hold: MoveLeaseKeeper) -> bool:
    name, tenant = finding.collection, finding.tenant
    if (hold.move.store == finding.store) == (finding.kind == "foreign-copy"):
        return False  # the collection has moved since the audit
    with suppress(CollectionNotFound, TenantNotFound):  # already deleted
        match finding.kind:
            case "missing-collection":
                store.ensure_schema(ledger.collections.get(name).schema)
            case "foreign-copy":
                if sorted_ids(all_documents(store, name)) != finding.ids:
                    return False
                hold.renew()
                store.drop_collection(name)
            case "unknown-tenant":
                if tenant in ledger.tenants.names(name):
                    return False
                store.drop_tenant(name, tenant)
            case _:
                return _remove_orphans(finding, ledger, store, hold)
    return True


def _remove_orphans(finding: Finding, ledger: Ledger, store: Store, hold: MoveLeaseKeeper) -> bool:
    name, tenant, inventory = finding.collection, finding.tenant, ledger.inventory
    whole = True
    for start in range(0, len(finding.ids), IDS_PER_LOOK):
        ids = finding.ids[start : start + IDS_PER_LOOK]
        hold.renew()
        if finding.kind == "orphan-chunks":
            orphans = set(ids) - inventory.chunks(name, tenant, ids)
            store.delete_chunks(name, sorted(orphans), tenant=tenant)
        else:
            orphans = set(ids) - inventory.documents(name, tenant, ids)
            store.delete_documents(name, sorted(orphans), tenant=tenant)
        whole = whole and len(orphans) == len(ids)
    return whole


@contextmanager
def upserts_paused(ledger: Ledger, name: str) -> Iterator[MoveLeaseKeeper]:
    """Hold the lease of a move of the collection to its own store, while no upsert runs.

    Raises Conflict if a move or an import of the collection runs or was interrupted, or if upserts
    do not end. If this process is killed, the lease expires without a move.
    """
    home, moves = ledger.collections.get(name).store, ledger.moves
    if ledger.inventory.moving(name):
        raise Conflict(f"collection {name!r} is being moved")
    move = moves.take(name, home, lease_seconds=LEASE_SECONDS)
    with MoveLeaseKeeper(moves, move) as hold:
        if move.switched or move.store != home or moves.has_copies(name, home):
            raise Conflict(f"a move of collection {name!r} was broken off")
        if ledger.collections.get(name).store != home:
            moves.end(move)
            raise Conflict(f"collection {name!r} was moved just now")
        moves.pause(move)
        deadline = time.monotonic() + UPSERT_SECONDS
        while moves.upserting(name):
            if time.monotonic() > deadline:
                raise Conflict(f"upserts of collection {name!r} do not end")
            time.sleep(0.05)
        yield hold
        hold.renew()  # raises LeaseLost if upserts may have run in the meantime
        moves.end(move)
