"""Purges documents, a tenant or a user: removes every trace, and writes a receipt.

Removed are the objects in the stores and the blobs, the ledger's rows that mention them, records of
searches with them as hits, conversations whose answers may be of them, and outcomes of the user.
The files of stores and SQLite are then rewritten, because deleted rows stay in them until they are
overwritten. The receipt is in the blob store (`purges/`), without texts and names; backups copy it,
and every restore of an older backup repeats the purge.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from callslip.errors import (
    CollectionNotFound,
    DocumentNotFound,
    InvalidRequest,
    StoreDown,
    TenantNotFound,
)
from callslip.ingestion.maintenance.orphans import upserts_paused
from callslip.ingestion.maintenance.removal import drop_tenant, remove_documents
from callslip.readers import owner_of
from callslip.stores.backend import Backend
from callslip.stores.backup.making import PURGES, States, has_ended
from callslip.stores.backup.manifest import time_prefix
from callslip.stores.backup.purging import digest_of
from callslip.stores.ledger.collections.receipts import greatest

BUSY_SECONDS = 180.0
"""How long a purge waits for the worker that processes a document, which may have been killed."""

Receipt = dict[str, Any]
"""JSON: `at`, `what` was purged, `document_ids`, counts `before`, `after` and `rows`, `notes`."""


class Turns(States, Protocol):
    """The turns of conversations by key."""

    def trace_ids(self, key: str) -> list[str]:
        """The searches of a conversation's turns."""

    def drop(self, keys: Sequence[str]) -> None:
        """Delete conversations."""

    def compact(self) -> None:
        """Let nothing of deleted conversations remain."""


def purge_document(backend: Backend, turns: Turns, document_id: str) -> Receipt:
    """Purge a document and those that it contains. Raises DocumentNotFound."""
    document = backend.ledger.documents.get(document_id)
    notes = []
    if document.parent_id is not None:
        notes.append(f"Document {document.parent_id} contains this one in its file: purge it too.")
    return _purged(backend, turns, {"document": document_id}, [document_id], notes)


def purge_tenant(backend: Backend, turns: Turns, collection: str, tenant: str) -> Receipt:
    """Purge a tenant. Raises what `tenant_documents` raises."""
    document_ids = tenant_documents(backend, collection, tenant)
    what = {"collection": collection, "tenant": tenant}
    return _purged(backend, turns, what, document_ids, [])


def tenant_documents(backend: Backend, collection: str, tenant: str) -> list[str]:
    """The ids of a tenant's documents.

    Raises CollectionNotFound, InvalidRequest if the collection has no tenants, and TenantNotFound
    if nothing is known of the tenant.
    """
    if not backend.ledger.collections.get(collection).schema.tenants:
        raise InvalidRequest(f"collection {collection!r} has no tenants")
    what = {"collection": collection, "tenant": tenant}
    document_ids = backend.ledger.purge.documents_of(collection, tenant)
    known = document_ids or tenant in backend.ledger.tenants.names(collection)
    if not known and _underway(backend, what) is None:
        raise TenantNotFound(f"collection {collection!r} has no tenant {tenant!r}")
    return document_ids


def purge_user(backend: Backend, turns: Turns, user: str) -> Receipt:
    """Purge a user's outcomes, searches and conversations, and those in the user's name.

    The receipt has hashes of the user's name.
    """
    what = {"user_sha256": digest_of(user), "owner": owner_of(f"user:{user}")}
    return _purged(backend, turns, what, [], [])


def repeat(backend: Backend, turns: Turns, receipt: Receipt) -> None:
    """Purge again what a receipt names, after a restore of an older backup."""
    ids = backend.ledger.purge.with_children(receipt["document_ids"])
    _purge(backend, turns, {"what": receipt["what"], "document_ids": ids}, lambda: None)


def _purged(
    backend: Backend, turns: Turns, what: dict[str, str], document_ids: list[str], notes: list[str]
) -> Receipt:
    """Purge and write the receipt, of which the first part is written before anything is removed.

    So the same call continues a purge that was interrupted: the ledger no longer knows then what
    the documents contained. `at` is the end: a backup that began before it may have rows that the
    purge removed since.
    """
    at = time.time()
    name = f"{time_prefix(at)}-{_suffix(what)}"
    receipt: Receipt = {"at": at, "name": name, "what": what, "notes": notes}
    receipt |= _underway(backend, what) or {}
    known = receipt.get("document_ids", ())
    receipt["document_ids"] = backend.ledger.purge.with_children([*known, *document_ids])

    def write() -> None:
        backend.blobs.write(PURGES, receipt["name"], json.dumps(receipt).encode())

    write()
    after = _purge(backend, turns, receipt, write)
    receipt |= {"at": time.time(), "after": after}
    write()
    return receipt


def _underway(backend: Backend, what: dict[str, str]) -> Receipt | None:
    """The receipt of a purge that was interrupted."""
    for name in sorted(backend.blobs.names(PURGES)):
        if name.endswith(_suffix(what)):
            receipt: Receipt = json.loads(backend.blobs.read(PURGES, name))
            if not has_ended(receipt):
                return receipt
    return None


def _suffix(what: dict[str, str]) -> str:
    return f"{digest_of(json.dumps(what, sort_keys=True))[:16]}.json"


def _purge(
    backend: Backend, turns: Turns, receipt: Receipt, write: Callable[[], None]
) -> dict[str, int]:
    """Purge, and return what is left by store.

    Each deletion is added to the receipt's counts, and the receipt is written: a purge that
    continues finds nothing more of what was deleted.
    """
    ledger, what, ids = backend.ledger, receipt["what"], receipt["document_ids"]
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()

    def count(rows: Mapping[str, int]) -> None:
        receipt["rows"] = dict(Counter(receipt.get("rows")) + Counter(rows))
        write()

    scopes = _scopes(backend, ids)
    if "tenant" in what:
        scopes = {(what["collection"], what["tenant"])}
    _hide(backend, what, ids)
    mentioned = {*ids, *ledger.purge.chunk_ids(ids)}
    searches = ledger.purge.searches_with(mentioned) if ids else set()
    keys = _conversations(backend, turns, scopes, searches, everything="tenant" in what)
    if "user_sha256" in what:
        outcomes, more = _of_user(backend, what["user_sha256"], what.get("owner"))
        count({"outcomes": outcomes})
        keys, searches = keys | more[0], searches | more[1]
    turns.drop(sorted(keys))
    count({"conversations": len(keys)})
    count(ledger.purge.searches(searches))
    for counts in _remove(backend, what, ids):
        before.update(counts.get("before") or {})
        after.update(counts.get("after") or {})
    receipt["before"] = greatest(receipt.get("before", {}), before)
    if ids:  # a search that ran meanwhile may have been recorded since
        count(ledger.purge.searches(ledger.purge.searches_with(mentioned)))
    count(ledger.purge.documents(ids))
    if "tenant" in what:
        count(ledger.purge.scope(what["collection"], what["tenant"]))
    for collection, tenant in sorted(scopes):
        _compact(backend, collection, tenant)
    ledger.purge.compact()
    turns.compact()
    return dict.fromkeys(receipt["before"], 0) | dict(after)


def _scopes(backend: Backend, ids: Iterable[str]) -> set[tuple[str, str]]:
    scopes = set()
    for document_id in ids:
        with suppress(DocumentNotFound):
            document = backend.ledger.documents.get(document_id)
            scopes.add((document.collection, document.tenant))
    return scopes


def _conversations(
    backend: Backend,
    turns: Turns,
    scopes: set[tuple[str, str]],
    searches: set[str],
    *,
    everything: bool,
) -> set[str]:
    """The conversations with an answer that may be of the documents.

    These are answers of a search with one of them among its hits, and of a search without a record,
    whose hits nobody can tell.
    """
    purge = backend.ledger.purge
    keys = {key for scope in scopes for key in purge.conversations(*scope)}
    if everything or not keys:
        return keys
    known = purge.known_searches() - searches
    return {key for key in keys if not known.issuperset(turns.trace_ids(key))}


def _of_user(
    backend: Backend, digest: str, owner: str | None
) -> tuple[int, tuple[set[str], set[str]]]:
    """Withdraw the user's outcomes; return their number, conversations and searches."""
    ledger, count = backend.ledger, 0
    keys = set(ledger.purge.conversations_of_owner(owner)) if owner else set()
    searches = ledger.purge.searches_with({owner}) if owner else set()
    for user in ledger.purge.users():
        if digest_of(user) != digest and user != owner:  # a long name is stored as its owner
            continue
        for outcome_id, trace_id in ledger.purge.outcomes_of(user):
            ledger.outcomes.withdraw(
                outcome_id, half_life_weeks=backend.settings.memory.half_life_weeks
            )
            searches.add(trace_id)
            count += 1
        keys.update(ledger.purge.conversations_of(user))
    return count, (keys, searches)


def _hide(backend: Backend, what: dict[str, str], ids: Iterable[str]) -> None:
    """Let no search find the documents any more."""
    if "tenant" in what:
        with suppress(TenantNotFound):
            backend.ledger.tenants.delete(what["collection"], what["tenant"])
    for document_id in ids:
        with suppress(DocumentNotFound):
            backend.ledger.documents.delete(document_id)


def _remove(backend: Backend, what: dict[str, str], ids: Iterable[str]) -> list[dict[str, Any]]:
    """Remove the documents, and the tenant, from stores and blobs; return their receipts."""
    ledger, receipts = backend.ledger, []
    for document_id in ids:
        with suppress(DocumentNotFound):  # a restored backup does not have it
            ledger.documents.get(document_id)
            receipts.append(_removed(backend, document_id))
    if "tenant" in what and what["tenant"] in ledger.tenants.names(what["collection"]):
        drop_tenant(backend, what["collection"], what["tenant"])
        if what["tenant"] in ledger.tenants.names(what["collection"]):
            raise StoreDown("the tenant cannot be removed now: the log says why")
    return receipts


def _removed(backend: Backend, document_id: str) -> dict[str, Any]:
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        remove_documents(backend, [document_id])
        document = backend.ledger.documents.get(document_id)
        if document.removed_at is not None:
            return dict(document.receipt or {})
        if not backend.ledger.sweep.busy(document_id) or time.monotonic() > deadline:
            raise StoreDown(
                f"document {document_id} is hidden, but cannot be removed now",
                hint="`callslip doctor` says which part is down; then run the same command again.",
            )
        time.sleep(0.5)


def _compact(backend: Backend, collection: str, tenant: str) -> None:
    """Rewrite the files of the collection's store while nothing is written to it."""
    ledger = backend.ledger
    with suppress(CollectionNotFound):
        record = ledger.collections.get(collection)
        if record.attached:
            return
        store = backend.store_of(record.store)
        with upserts_paused(ledger, collection), suppress(TenantNotFound, CollectionNotFound):
            store.compact(collection, tenant=tenant)
