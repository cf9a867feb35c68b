"""Chunks that come ready made: with their ids, levels and vectors, and no file behind them.

They become chunks of a live document whose original is empty, which no file's is. Each change is an
upsert of that document under a lease, so that whatever a store holds is known to the ledger, nobody
else writes the document meanwhile, and a worker or a repair that takes it over writes what the
store has.
"""

import hashlib
import os
import socket
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from callslip.errors import Conflict, ObjectRefused, PermanentError, TransientError
from stores.blobs import Blobs, original_name
from stores.checks import chunk_fault
from stores.contract import Store
from stores.ledger import STEPS, Claim, Ledger, Transcript
from stores.ledger.transcripts import StepRow, VersionRow
from stores.ledger.vectors import text_hash
from stores.records import ChunkRecord, DocumentRecord
from stores.transfer.hold import Hold, take

EMPTY = hashlib.sha256(b"").hexdigest()

LEASE_SECONDS = 60.0
"""After which the sweep lets a worker finish what a killed process began."""

MOST_CRASHES = 1000
"""Of processes that changed the same document: it is live, and none of them sets it aside."""

WAIT_SECONDS = 10.0
"""How long to wait for whoever else is changing the document."""


@dataclass(frozen=True)
class Written:
    """How many chunks are new, and how many were there and were written anew."""

    inserted: int
    replaced: int


@dataclass(frozen=True)
class Shelf:
    """Where the documents are: a collection, or a tenant of it, and its store."""

    ledger: Ledger
    store: Store
    collection: str
    blobs: Blobs
    tenant: str = ""


def put(
    shelf: Shelf,
    name: str,
    given: Sequence[ChunkRecord],
    batch_size: int,
) -> Written:
    """Write chunks of the document of this name, made where it is missing; others of it stay.

    Whose the chunks are is set here. Conflict where the document was made from a file, or
    where a chunk's id is another document's; ObjectRefused where a chunk cannot be stored.
    """
    document_id = _known(shelf, name) or _made(shelf, name)
    if not is_given(shelf.ledger, document_id):
        raise Conflict(
            f"document {name!r} was made from a file",
            hint="Chunks of its own can be added under another file name.",
        )
    unique = {c.chunk_id: replace(c, document_id=document_id) for c in given}
    chunks = list(unique.values())
    _check_sound(shelf, chunks)
    claim, ids = _claimed(shelf.ledger, document_id), {c.chunk_id for c in chunks}
    before = shelf.ledger.chunks.live_ids(document_id)
    try:
        with shelf.ledger.leases.kept(claim) as keeper:
            _write(shelf, claim, name, chunks, batch_size, keeper.check)
            shelf.ledger.leases.go_live(claim, sorted(before | ids), {"chunks": len(before | ids)})
    except PermanentError:
        _leave(shelf, claim, before)
        raise
    except BaseException:
        shelf.ledger.leases.drop(claim)
        raise
    return Written(len(ids - before), len(ids & before))


def take_out(shelf: Shelf, document_id: str, chunk_ids: set[str]) -> None:
    """Take chunks out of a document of given chunks: hidden at once, and then removed.

    Conflict where the document was made from a file.
    """
    if not is_given(shelf.ledger, document_id):
        raise Conflict(f"document {document_id} was made from a file")
    claim = _claimed(shelf.ledger, document_id)
    _leave(shelf, claim, shelf.ledger.chunks.live_ids(document_id) - chunk_ids)


def _leave(shelf: Shelf, claim: Claim, left: set[str]) -> None:
    """Let these chunks be all of the document."""
    ledger = shelf.ledger
    ledger.leases.go_live(claim, sorted(left), {"chunks": len(left)})
    if ledger.inventory.moving(shelf.collection):
        return  # another store may hold copies: the sweep prunes both
    if ended := ledger.chunks.end(claim.document_id):
        shelf.store.delete_chunks(shelf.collection, sorted(ended), tenant=shelf.tenant)
        ledger.chunks.forget(claim.document_id, ended)


def is_given(ledger: Ledger, document_id: str) -> bool:
    """Whether the live document has nothing that it could be made from anew."""
    version = ledger.versions.live([document_id]).get(document_id)
    return version is not None and not ledger.documents.version(document_id, version).size


def _known(shelf: Shelf, name: str) -> str | None:
    return shelf.ledger.documents.id_of(shelf.collection, name, tenant=shelf.tenant)


def _made(shelf: Shelf, name: str) -> str:
    """A live document without chunks, or the one that somebody else has made meanwhile."""
    document_id, now, moves = uuid.uuid4().hex, time.time(), shelf.ledger.moves
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
        tenant=shelf.tenant,
        name=name,
        live_version=1,
        created_at=now,
        versions=(version,),
        steps=tuple(StepRow(step, 0, 0, now, now, None, {}) for step in STEPS),
        chunks={},
    )
    with Hold(moves, take(moves, shelf.collection, shelf.store.kind)) as hold:
        if hold.move.store != shelf.store.kind or hold.move.switched:
            raise TransientError(f"collection {shelf.collection!r} is being moved")
        known = _known(shelf, name)
        if known is None:
            shelf.blobs.write(document_id, original_name(EMPTY), b"")
            shelf.ledger.transcripts.write(shelf.collection, transcript, hold.move)
        moves.end(hold.move)
    return known or document_id


def _check_sound(shelf: Shelf, chunks: Sequence[ChunkRecord]) -> None:
    """Refuse all of them where one cannot be stored."""
    schema = shelf.ledger.collections.get(shelf.collection).schema
    for chunk in chunks:
        if fault := chunk_fault(chunk, schema):
            raise ObjectRefused(f"chunk {chunk.chunk_id!r} cannot be stored: {fault}")


def _claimed(ledger: Ledger, document_id: str) -> Claim:
    """The upsert of the live version, begun again."""
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
    shelf: Shelf,
    claim: Claim,
    name: str,
    chunks: Sequence[ChunkRecord],
    batch_size: int,
    alive: Callable[[], None],
) -> None:
    ledger, store, where, tenant = shelf.ledger, shelf.store, shelf.collection, shelf.tenant
    ledger.chunks.expect(
        claim,
        {c.chunk_id: text_hash(c.body) for c in chunks},
        {c.chunk_id: (c.start, c.end) for c in chunks},
    )
    ledger.collections.has_properties(where, {n for c in chunks for n in c.properties})
    if tenant:
        store.ensure_tenant(where, tenant)
    for at in range(0, len(chunks), batch_size):
        alive()
        some = chunks[at : at + batch_size]
        _whole(store.batch_upsert_chunks(where, some, tenant=tenant).failed)
    record = DocumentRecord(claim.document_id, name, name)
    _whole(store.batch_upsert_documents(where, [record], tenant=tenant).failed)


def _whole(failed: Mapping[str, str]) -> None:
    if failed:
        object_id, reason = next(iter(failed.items()))
        raise ObjectRefused(f"the store refused {len(failed)} objects, first {object_id}: {reason}")
