"""Moves a collection to another store while searches and upserts continue.

The mover copies documents in passes until a pass copies few of them. Then it pauses upserts, copies
the rest, compares both stores, and sets the collection's store in the ledger. If a mover is killed
at any point, the next call of `migrate` completes the move.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from callslip.errors import Conflict, CopyDiffers, MoveError, NotFound
from callslip.stores.backend import Backend
from callslip.stores.contract import Store
from callslip.stores.ledger import CollectionRecord, Move, Rebuilt
from callslip.stores.records import CollectionSchema
from callslip.stores.sides import kind_of, other_side
from callslip.stores.transfer.bundle import DocumentBundle, collect, fault_of, grouped, put
from callslip.stores.transfer.counts import document_ids, store_counts
from callslip.stores.transfer.move_lease import MoveLeaseKeeper, take
from callslip.stores.transfer.probes import Comparison, ask, best_of_both, draw, still_live
from callslip.stores.transfer.reports import Phase, Progress, Report

FEW = 20
"""Upserts are paused once a pass copies at most this many documents."""

MOST_PASSES = 10

UPSERT_SECONDS = 600.0
"""Maximum time to wait until running upserts end."""

SETTLE_SECONDS = 5.0
"""Maximum time for which counts may differ because stores are still processing deletions."""

IDS_PER_CALL = 500


@dataclass(frozen=True)
class Rebuild:
    """How a collection is built anew on the other side of its store.

    `schema` is that of the new vectors, `analyze` makes the terms of a probe query. `remade`
    returns a document with new terms and vectors; it calls its second argument, which may raise,
    between batches.
    """

    embedder: str
    analyzer: str
    schema: Callable[[CollectionSchema], CollectionSchema]
    remade: Callable[[DocumentBundle, Callable[[], None]], DocumentBundle]
    analyze: Callable[[str], str]


def rebuild(
    backend: Backend,
    name: str,
    how: Rebuild,
    *,
    grace: float,
    progress: Progress,
    phase: Phase = lambda _: None,
) -> Report:
    """Build a collection anew beside its present form, compare both, and switch.

    Searches and ingestion continue at the present form until the switch. An interrupted call is
    continued by the next one. Errors and `grace` as in `migrate`.
    """
    home = backend.ledger.collections.writable(name).store
    underway = backend.ledger.moves.underway(name)
    finish = underway is not None and underway[1] and underway[0] == other_side(home)
    to = home if finish else other_side(home)
    return _move(backend, name, to, how, keep=False, grace=grace, progress=progress, phase=phase)


def migrate(
    backend: Backend,
    name: str,
    to: str,
    *,
    keep: bool,
    grace: float,
    progress: Progress,
    phase: Phase = lambda _: None,
) -> Report:
    """Move a collection to the store `to`; with `keep`, the copy in the old store is not deleted.

    `grace` is the longest duration, in seconds, of a search that began in the old store. Raises
    Conflict if `to` is the current store, another process is moving the collection, or the target
    has a foreign collection of this name. Raises CopyDiffers if both stores differ: then the
    collection's store is unchanged.
    """
    home = backend.ledger.collections.writable(name).store
    if home != to and kind_of(home) == to:
        raise _here_already(name, to)
    return _move(backend, name, to, None, keep=keep, grace=grace, progress=progress, phase=phase)


def _here_already(name: str, to: str) -> Conflict:
    return Conflict(
        f"collection {name!r} is in store {to!r} already", hint="Name another store with --to."
    )


def _move(
    backend: Backend,
    name: str,
    to: str,
    how: Rebuild | None,
    *,
    keep: bool,
    grace: float,
    progress: Progress,
    phase: Phase,
) -> Report:
    begun = time.monotonic()
    target = backend.store_of(to)
    target.ping()
    with _Mover(backend, name, to, phase) as mover:
        collection = mover.collection
        if collection.store == to:  # an earlier call was killed after the switch
            mover.clear(keep, grace)
            counts = store_counts(backend.ledger, target, name)
            documents = sum(n for n, _ in backend.ledger.transcripts.counts(name).values())
            return Report(name, documents, sum(counts.values()), time.monotonic() - begun)
        source = backend.store_of(collection.store)
        source.ping()
        passage = _Passage(backend, collection, source, target, mover, progress, how)
        passage.prepare()
        passage.copy_most()
        mover.pause()
        phase("New documents wait while the last ones are copied")
        passage.copy_rest()
        phase("Comparing both stores")
        tenants, comparison = passage.verify()
        mover.switch(collection.store, passage.rebuilt)
        passage.make_tenants()
        mover.clear(keep, grace)
    return Report(
        collection=name,
        documents=sum(counts["documents"] for counts in tenants.values()),
        chunks=sum(counts["chunks"] for counts in tenants.values()),
        seconds=time.monotonic() - begun,
        left_out=backend.ledger.transcripts.left_out(name),
        tenants=tenants,
        probes=comparison.as_json(),
    )


class _Mover(MoveLeaseKeeper):
    """Has the lease of a move to another store.

    `collection` is read under the lease, so no other process can change its store.
    """

    def __init__(self, backend: Backend, name: str, to: str, phase: Phase) -> None:
        self._backend, self._moves, self._phase = backend, backend.ledger.moves, phase
        self._name, self._to = name, to
        move, self.collection = self._begin()
        super().__init__(self._moves, move)

    def drop(self, store: Store) -> None:
        """Drop the collection's copy in a store. Raises LeaseLost if the lease has expired."""
        self.renew()
        store.drop_collection(self._name)

    def pause(self) -> None:
        """Refuse new upserts of the collection until the switch or the end of the move."""
        self._moves.pause(self.move)

    def switch(self, source: str, rebuilt: Rebuilt | None) -> None:
        """Make the target the collection's store."""
        self.check()
        self.move = self._moves.switch(self.move, source, rebuilt)

    def clear(self, keep: bool, grace: float) -> None:
        """Drop the copy in the old store after every search there has ended, and end the move."""
        if not keep:
            self._phase(f"Switched. Searches at the old store have {grace:.0f} s to end")
            time.sleep(grace)
            self.drop(self._backend.store_of(self.move.store))
        self._moves.end(self.move, keep=keep)

    def _begin(self) -> tuple[Move, CollectionRecord]:
        """Take the lease, clean up after another interrupted move, and begin or continue this one.

        The collection is read under the lease, because it may change while the call waits for it.
        """
        while True:
            move = take(self._moves, self._name, self._to)
            try:
                collection = self._backend.ledger.collections.get(self._name)
                here = collection.store == self._to
                if here if move.switched else move.store == self._to and not here:
                    return move, collection
                if move.store not in (self._to, collection.store):
                    self._backend.store_of(move.store).drop_collection(self._name)
                self._moves.end(move)
            except BaseException:
                self._moves.release(move)
                raise
            if here:
                raise _here_already(self._name, self._to)


class _Passage:
    """Copies a collection from the source store to the target store and compares both."""

    def __init__(
        self,
        backend: Backend,
        collection: CollectionRecord,
        source: Store,
        target: Store,
        mover: _Mover,
        progress: Progress,
        how: Rebuild | None,
    ) -> None:
        self._ledger, self._name = backend.ledger, collection.name
        self._source, self._target = source, target
        self._mover, self._progress, self._how = mover, progress, how
        self._schema = how.schema(collection.schema) if how else collection.schema
        self._total = sum(n for n, _ in self._ledger.transcripts.counts(self._name).values())

    @property
    def rebuilt(self) -> Rebuilt | None:
        """What the collection's record says after the switch; None if it only moves."""
        how = self._how
        return Rebuilt(how.embedder, how.analyzer, self._schema) if how else None

    def prepare(self) -> None:
        """Create the collection in the target, after dropping an outdated copy there."""
        name, to = self._name, self._target.kind
        for tenant in ("", *self._ledger.tenants.all(name)):
            self._target.check_names(name, tenant)
        there = name in self._target.collections()
        if not there:
            self._ledger.moves.distrust(name, to)
        elif not self._ledger.moves.has_copies(name, to):
            ids = sorted(document_ids(self._target, name))
            for start in range(0, len(ids), IDS_PER_CALL):
                if self._ledger.moves.strangers(name, ids[start : start + IDS_PER_CALL]):
                    raise Conflict(
                        f"store {to!r} holds another collection {name!r} already",
                        hint="Drop it there, or move to another store.",
                    )
            self._mover.drop(self._target)
        elif self._how and self._target.schema(name) != self._schema:  # of another embedder
            self._mover.drop(self._target)
            self._ledger.moves.distrust(name, to)
        self._target.ensure_schema(self._schema)
        self.make_tenants()
        if self._how and (copied := self._ledger.moves.a_copy(name, to)):
            bundle = self._collect(copied)
            if bundle is None or fault_of(self._target, name, bundle):  # of an earlier analyzer
                self._ledger.moves.distrust(name, to)

    def make_tenants(self) -> None:
        """Create the ledger's tenants in the target."""
        for tenant in self._ledger.tenants.all(self._name):
            self._target.ensure_tenant(self._name, tenant)

    def copy_most(self) -> None:
        """Copy in passes until a pass copies at most FEW documents."""
        for _ in range(MOST_PASSES):
            if self._pass() <= FEW:
                return

    def copy_rest(self) -> None:
        """Wait until running upserts end, then copy until no document differs."""
        deadline = time.monotonic() + UPSERT_SECONDS
        while self._ledger.moves.upserting(self._name):
            self._mover.check()
            if time.monotonic() > deadline:
                raise MoveError(
                    f"an upsert of collection {self._name!r} runs for more than"
                    f" {UPSERT_SECONDS:.0f} s",
                    hint="Run the same command again when it has ended.",
                )
            time.sleep(0.05)
        self._ledger.moves.fence(self._name)
        for _ in range(MOST_PASSES):
            self._pass()
            if not self._ledger.moves.stale(self._name, self._target.kind, limit=1):
                return
        raise CopyDiffers(f"documents of {self._name!r} changed although upserts wait")

    def verify(self) -> tuple[dict[str, dict[str, int]], Comparison]:
        """Compare counts and answers. Raises CopyDiffers if they differ."""
        tenants, differing = self._compare_counts()
        comparison = Comparison()
        analyze = self._how.analyze if self._how else None
        for probe in draw(self._ledger, self._source, self._name, analyze):
            self._mover.check()
            one = ask(self._ledger, self._source, self._name, probe)
            other = dict(ask(self._ledger, self._target, self._name, probe))
            if not still_live(self._ledger, probe, one):  # a document was deleted meanwhile
                continue
            if self._source.keyword_score != self._target.keyword_score:
                other.pop("keyword", None)
            best = best_of_both(self._target, self._name, probe, one, other)
            comparison.add(probe, one, other, best)
        if faults := differing + comparison.faults():
            self._ledger.moves.distrust(self._name, self._target.kind)
            raise CopyDiffers(
                f"store {self._target.kind!r} differs from {self._source.kind!r}:"
                f" {'; '.join(faults)}"
            )
        return tenants, comparison

    def _compare_counts(self) -> tuple[dict[str, dict[str, int]], list[str]]:
        """The counts of each tenant, and the differences that remain after SETTLE_SECONDS."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            self._remove_gone()
            live = self._ledger.transcripts.counts(self._name)
            counts = store_counts(self._ledger, self._target, self._name)
            wanted = {tenant: live.get(tenant, (0, 0))[1] for tenant in counts}
            if counts == wanted or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        there = store_counts(self._ledger, self._source, self._name)
        tenants = {
            tenant: {
                "documents": live.get(tenant, (0, 0))[0],
                "chunks": wanted[tenant],
                f"chunks in {self._source.kind}": there.get(tenant, 0),
                f"chunks in {self._target.kind}": counts[tenant],
            }
            for tenant in counts
        }
        return tenants, [
            f"tenant {tenant!r} has {counts[tenant]} chunks, not {wanted[tenant]}"
            for tenant in counts
            if counts[tenant] != wanted[tenant]
        ]

    def _pass(self) -> int:
        """Copy the documents that differ, and return their number."""
        copied, after = 0, ""
        while page := self._ledger.moves.stale(self._name, self._target.kind, after=after):
            for group in grouped(self._collected(page)):
                copied += self._copy(group)
            after = page[-1]
        self._remove_gone()
        return copied

    def _collected(self, document_ids: list[str]) -> Iterator[DocumentBundle]:
        """Read documents from the source; skip those that an upsert is changing."""
        for document_id in document_ids:
            self._mover.check()
            bundle = self._collect(document_id)
            if bundle is not None:
                yield bundle

    def _collect(self, document_id: str) -> DocumentBundle | None:
        """Read a document as the target is to have it; None if an upsert is changing it."""
        bundle = collect(self._ledger, self._source, self._name, document_id, settled=True)
        if bundle is None or self._how is None:
            return bundle
        return self._how.remade(bundle, self._mover.check)

    def _copy(self, group: list[DocumentBundle]) -> int:
        """Copy documents of one tenant. The returned number omits those that changed meanwhile."""
        moves, to = self._ledger.moves, self._target.kind
        moves.note(self._name, to, {p.transcript.document_id: (0, 0) for p in group})
        try:
            put(self._target, self._name, group, self._mover.check)
        except (CopyDiffers, NotFound):
            if len(group) > 1:
                return sum(self._copy([bundle]) for bundle in group)
            now = self._ledger.transcripts.read(group[0].transcript.document_id)
            if now is not None and now.transcript == group[0].transcript:
                raise
            return 0  # a deletion has removed it from the target meanwhile
        copied = {p.transcript.document_id: (p.transcript.live_version, p.upserts) for p in group}
        moves.note(self._name, to, copied)
        for bundle in group:
            self._progress(self._total, len(bundle.chunks))
        return len(group)

    def _remove_gone(self) -> None:
        """Delete from the target the documents that were deleted during or after their copy."""
        moves, to = self._ledger.moves, self._target.kind
        while gone := moves.gone(self._name, to):
            for document_id, tenant in gone:
                self._mover.check()
                try:
                    self._target.delete_documents(self._name, [document_id], tenant=tenant)
                except NotFound:
                    self._ledger.collections.get(self._name)  # only its tenant may be gone
                moves.forget(self._name, to, document_id)
