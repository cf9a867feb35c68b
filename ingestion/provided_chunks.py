"""Writes provided chunks: a client supplies their ids, levels and vectors instead of a file.

Provided chunks belong to a live document whose original is empty; no original of a file is empty.
Each change is an upsert of that document under a lease. So the ledger knows every chunk of the
store, no other process writes the document at the same time, and a worker or a repair that takes
over the document writes the content of the store.
"""

import hashlib
import os
import socket
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from callslip.errors import Conflict, ObjectRefused, PermanentError, TransientError
from callslip.stores.backend import Backend, OnBackend
from callslip.stores.blobs import original_name
from callslip.stores.contract import Store
from callslip.stores.disk import check_space
from callslip.stores.ledger import STEPS, Claim, Ledger, Transcript
from callslip.stores.ledger.caches.vectors import text_hash
from callslip.stores.ledger.transcripts.values import StepRow, VersionRow
from callslip.stores.properties.checks import chunk_fault
from callslip.stores.records import ChunkRecord, DocumentRecord, dated, for_audience
from callslip.stores.transfer.move_lease import MoveLeaseKeeper, take

EMPTY = hashlib.sha256(b"").hexdigest()

LEASE_SECONDS = 60.0
"""Seconds after which the sweep lets a worker finish the upsert of a killed process."""

MOST_CRASHES = 1000
"""The maximum number of crashes of one upsert, so high that a live document is never set aside."""

WAIT_SECONDS = 10.0
"""Seconds to wait for another process that changes the document."""


@dataclass(frozen=True)
class Written:
    """The number of new chunks, and the number of chunks that replaced stored chunks."""

    inserted: int
    replaced: int


@dataclass(frozen=True)
class ChunkScope(OnBackend):
    """A collection, or one tenant of it, with provided chunks; `kind` is its store's kind."""

    backend: Backend
    kind: str
    collection: str
    tenant: str = ""

    @cached_property
    def store(self) -> Store:
        """The client of the collection's store; SettingsError if the store is not configured."""
        return self.store_of(self.kind)


def put(
    scope: ChunkScope,
    name: str,
    provided: Sequence[ChunkRecord],
    batch_size: int,
) -> Written:
    """Write chunks of the document with this name; make the document if it does not exist.

    Other chunks of the document stay. Sets the document id of the chunks. Raises Conflict if the
    document was made from a file, or if a chunk's id belongs to another document; ObjectRefused if
    a chunk cannot be stored, DiskFull if the disk has too little room; NameTaken if the reader may
    not read the document. If the chunks are refused, a document that this call made is removed.
    """
    check_space(scope.settings)
    known = check(scope, name, provided)
    document_id = known or _made(scope, name)
    _check_no_file(scope, name, document_id)
    unique = {c.chunk_id: replace(c, document_id=document_id) for c in provided}
    chunks = list(unique.values())
    claim, ids = _claimed(scope.ledger, document_id), {c.chunk_id for c in chunks}
    before = scope.ledger.chunks.live_ids(document_id)
    try:
        with scope.ledger.leases.keep([claim]) as (lease,):
            audience = scope.ledger.readers.audience(document_id)
            _write(scope, claim, name, chunks, batch_size, lease.check, audience)
            left = sorted(before | ids)
            scope.ledger.leases.go_live(claim, left, {"chunks": len(left)})
    except PermanentError:
        if known or before:
            _leave(scope, claim, before)
        else:
            _remove(scope, claim)
        raise
    except BaseException:
        scope.ledger.leases.drop(claim)
        raise
    return Written(len(ids - before), len(ids & before))


def check(scope: ChunkScope, name: str, provided: Sequence[ChunkRecord]) -> str | None:
    """Check chunks, which lack a document id, as `put` does before it writes.

    Returns the id of the document; None if it does not exist. Raises the permanent errors of `put`.
    """
    scope.ledger.documents.check_name(scope.collection, name, tenant=scope.tenant)
    document_id = _known(scope, name)
    if document_id:
        _check_no_file(scope, name, document_id)
    schema = scope.ledger.collections.get(scope.collection).schema
    for chunk in provided:
        if fault := chunk_fault(replace(chunk, document_id=EMPTY), schema):
            raise ObjectRefused(f"chunk {chunk.chunk_id!r} cannot be stored: {fault}")
    scope.ledger.chunks.check_free([chunk.chunk_id for chunk in provided], document_id)
    return document_id


def take_out(scope: ChunkScope, document_id: str, chunk_ids: set[str]) -> None:
    """Remove chunks from a document of provided chunks: hide them at once, then delete them.

    Raises Conflict if the document was made from a file.
    """
    if not has_provided_chunks(scope.ledger, document_id):
        raise Conflict(f"document {document_id} was made from a file")
    claim = _claimed(scope.ledger, document_id)
    _leave(scope, claim, scope.ledger.chunks.live_ids(document_id) - chunk_ids)


def _leave(scope: ChunkScope, claim: Claim, left: set[str]) -> None:
    """Make these chunks the only ones of the document: hide the others, then delete them."""
    try:
        _delete_others(scope, claim, left)
    finally:
        scope.ledger.leases.go_live(claim, sorted(left), {"chunks": len(left)})


def _remove(scope: ChunkScope, claim: Claim) -> None:
    """Delete the document; its chunks leave the store at once, so that their ids are free again."""
    try:
        _delete_others(scope, claim, set())
    finally:
        scope.ledger.documents.delete(claim.document_id)
        scope.ledger.leases.drop(claim)


def _delete_others(scope: ChunkScope, claim: Claim, left: set[str]) -> None:
    """Hide and delete the chunks of the document that are not among these.

    They are deleted under the claim. Without it, a process that began to delete a chunk could do so
    after a client has put it again.
    """
    ledger = scope.ledger
    with ledger.leases.keep([claim]) as (lease,):
        gone = ledger.chunks.hide_others(claim, left)
        # While the collection is being moved, another store may hold copies: the sweep deletes
        # both.
        if gone and not ledger.inventory.moving(scope.collection):
            lease.check()
            scope.store.delete_chunks(scope.collection, sorted(gone), tenant=scope.tenant)
            ledger.chunks.forget(claim.document_id, gone)


def has_provided_chunks(ledger: Ledger, document_id: str) -> bool:
    """Whether the live document has an empty original, so that it cannot be ingested again."""
    version = ledger.versions.live([document_id]).get(document_id)
    return version is not None and not ledger.documents.version(document_id, version).size


def _check_no_file(scope: ChunkScope, name: str, document_id: str) -> None:
    if not has_provided_chunks(scope.ledger, document_id):
        raise Conflict(
            f"document {name!r} was made from a file",
            hint="Chunks of its own can be added under another file name.",
        )


def _known(scope: ChunkScope, name: str) -> str | None:
    return scope.ledger.documents.id_of(scope.collection, name, tenant=scope.tenant)


def _made(scope: ChunkScope, name: str) -> str:
    """Make a live document without chunks; return the id of one that another process made first."""
    document_id, now, moves = uuid.uuid4().hex, time.time(), scope.ledger.moves
    version = VersionRow(
        version=1,
        state="live",
        sha256=EMPTY,
        size=0,
        filename=name,
        title="",
        properties={},
        error=None,
        created_at=now,
        finished_at=now,
    )
    transcript = Transcript(
        document_id=document_id,
        tenant=scope.tenant,
        name=name,
        live_version=1,
        created_at=now,
        versions=(version,),
        steps=tuple(StepRow(step, 0, 0, now, now, None, {}) for step in STEPS),
        chunks={},
    )
    with MoveLeaseKeeper(moves, take(moves, scope.collection, scope.store.kind)) as keeper:
        if keeper.move.store != scope.store.kind or keeper.move.switched:
            raise TransientError(f"collection {scope.collection!r} is being moved")
        known = _known(scope, name)
        if known is None:
            scope.blobs.write(document_id, original_name(EMPTY), b"")
            scope.ledger.transcripts.write(scope.collection, transcript, keeper.move)
        moves.end(keeper.move)
    return known or document_id


def _claimed(ledger: Ledger, document_id: str) -> Claim:
    """Reopen and claim the upsert of the live version; TransientError if another process has it."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        version = ledger.versions.live([document_id]).get(document_id)
        if version is not None:
            ledger.leases.reopen(document_id, version, "upsert")  # unless it is open already
            claim = ledger.leases.claim(
                document_id,
                version,
                "upsert",
                worker=f"{socket.gethostname()}:{os.getpid()}",
                lease_seconds=LEASE_SECONDS,
                max_crashes=MOST_CRASHES,
            )
            if isinstance(claim, Claim):
                return claim
        if time.monotonic() > deadline:
            raise TransientError(f"document {document_id} is being changed by somebody else")
        time.sleep(0.05)


def _write(
    scope: ChunkScope,
    claim: Claim,
    name: str,
    chunks: Sequence[ChunkRecord],
    batch_size: int,
    alive: Callable[[], None],
    audience: str,
) -> None:
    ledger, store, where, tenant = scope.ledger, scope.store, scope.collection, scope.tenant
    ledger.chunks.expect(
        claim,
        {c.chunk_id: text_hash(c.body) for c in chunks},
        {c.chunk_id: (c.start, c.end) for c in chunks},
    )
    ledger.collections.has_properties(where, {n for c in chunks for n in c.properties})
    if tenant:
        store.ensure_tenant(where, tenant)
    plain = DocumentRecord(claim.document_id, name, name)
    chunks = dated(chunks, ledger.documents.get(claim.document_id).created_at, time.time())
    record, chunks = for_audience(audience, plain, chunks)
    for at in range(0, len(chunks), batch_size):
        alive()
        some = chunks[at : at + batch_size]
        _whole(store.batch_upsert_chunks(where, some, tenant=tenant).failed)
    _whole(store.batch_upsert_documents(where, [record], tenant=tenant).failed)


def _whole(failed: Mapping[str, str]) -> None:
    if failed:
        object_id, reason = next(iter(failed.items()))
        raise ObjectRefused(f"the store refused {len(failed)} objects, first {object_id}: {reason}")
