"""Removing what an audit found and nobody knows, after a second look: some of it may live by now.

That look and the removal are done under the lease of the collection's move, so nobody moves it or
imports into it meanwhile, and while no upsert of it runs.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from callslip.errors import CollectionNotFound, Conflict, LeaseLost, TenantNotFound
from stores.audit import Finding, told
from stores.blobs import Blobs
from stores.contract import Store
from stores.ledger import Ledger
from stores.strays import all_documents, ownerless
from stores.transfer.hold import LEASE_SECONDS, Hold

UPSERT_SECONDS = 10.0
"""How long to wait for running upserts to end."""

IDS_PER_LOOK = 50
"""Objects that are removed after one look at the ledger."""


def remove_files(finding: Finding, ledger: Ledger, blobs: Blobs) -> bool:
    """Remove files of documents that the ledger does not know; False where it knows one by now."""
    gone = set()
    for document_id in finding.ids:
        if ownerless(ledger, blobs, {document_id}):
            blobs.delete(document_id)
            gone.add(document_id)
    return gone == set(finding.ids)


def put_right(finding: Finding, ledger: Ledger, store: Store) -> bool:
    """Remove what a store should not hold, or make the collection that it should.

    False where something was left: it lives by now, or the collection changes just now.
    """
    try:
        with _alone(ledger, finding.collection) as hold:
            store.forget(finding.collection)
            return _removed(finding, ledger, store, hold)
    except (CollectionNotFound, Conflict, LeaseLost):
        return False


def _removed(finding: Finding, ledger: Ledger, store: Store, hold: Hold) -> bool:
    name, tenant = finding.collection, finding.tenant
    if (hold.move.store == finding.store) == (finding.kind == "foreign-copy"):
        return False  # it has moved since
    with suppress(CollectionNotFound, TenantNotFound):  # it went meanwhile, which is as well
        match finding.kind:
            case "missing-collection":
                store.ensure_schema(ledger.collections.get(name).schema)
            case "foreign-copy":
                if told(all_documents(store, name)) != finding.ids:
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


def _remove_orphans(finding: Finding, ledger: Ledger, store: Store, hold: Hold) -> bool:
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
            for document_id in sorted(orphans):
                store.delete_document(name, document_id, tenant=tenant)
        whole = whole and len(orphans) == len(ids)
    return whole


@contextmanager
def _alone(ledger: Ledger, name: str) -> Iterator[Hold]:
    """Hold the lease, as if to move the collection to where it is, with no upsert running.

    Conflict where it is moved or imported into, where that was broken off, and where upserts do not
    end. Killed in here nothing is half done: the lease runs out, and its row says nothing.
    """
    home, moves = ledger.collections.get(name).store, ledger.moves
    if ledger.inventory.moving(name):
        raise Conflict(f"collection {name!r} is being moved")
    move = moves.take(name, home, lease_seconds=LEASE_SECONDS)
    with Hold(moves, move) as hold:
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
        hold.renew()  # what another has taken over is not ended
        moves.end(move)
