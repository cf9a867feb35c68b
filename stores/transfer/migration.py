"""Moving a collection to another store while it is searched and documents keep arriving.

Documents are copied one by one, in passes, until little changes; then upserts wait for a moment,
the rest is copied, both sides are compared, and the ledger names the other store. A mover that was
killed at any point is followed by another that finishes the job.
"""

import time
from collections.abc import Iterator

from callslip.errors import (
    Conflict,
    CopyDiffers,
    MoveError,
    NotFound,
)
from stores.contract import Store
from stores.ledger import CollectionRecord, Move
from stores.transfer.counts import document_ids, store_counts
from stores.transfer.hold import Hold, take
from stores.transfer.house import House, Phase, Progress, Report
from stores.transfer.parcel import Parcel, collect, grouped, put
from stores.transfer.probes import Comparison, ask, best_of_both, draw

FEW = 20
"""Documents that a pass copied, when upserts are made to wait for the rest."""

MOST_PASSES = 10

UPSERT_SECONDS = 600.0
"""How long to wait for running upserts to end."""

SETTLE_SECONDS = 5.0
"""How long counts may differ while deletions are on their way through the stores."""

IDS_PER_CALL = 500


def migrate(
    house: House,
    name: str,
    to: str,
    *,
    keep: bool,
    grace: float,
    progress: Progress,
    phase: Phase = lambda _: None,
) -> Report:
    """Move a collection to the store `to`; `keep` leaves the copy in the old one.

    `grace` is how long, in seconds, a search may take that has begun at the old one. Conflict for
    the store that it is kept in, while another process moves it, and where a foreign collection of
    this name is in its way; CopyDiffers where both sides are not alike: nothing was switched then.
    """
    begun = time.monotonic()
    house.ledger.collections.writable(name)
    target = house.store_of(to)
    target.ping()
    with _Mover(house, name, to, phase) as mover:
        collection = mover.collection
        if collection.store == to:  # the one before was killed after it had switched
            mover.clear(keep, grace)
            counts = store_counts(house.ledger, target, name)
            documents = sum(n for n, _ in house.ledger.transcripts.counts(name).values())
            return Report(name, documents, sum(counts.values()), time.monotonic() - begun)
        source = house.store_of(collection.store)
        source.ping()
        passage = _Passage(house, collection, source, target, mover, progress)
        passage.prepare()
        passage.copy_most()
        mover.pause()
        phase("New documents wait while the last ones are copied")
        passage.copy_rest()
        phase("Comparing both stores")
        tenants, comparison = passage.verify()
        mover.switch(collection.store)
        passage.make_tenants()
        mover.clear(keep, grace)
    return Report(
        collection=name,
        documents=sum(counts["documents"] for counts in tenants.values()),
        chunks=sum(counts["chunks"] for counts in tenants.values()),
        seconds=time.monotonic() - begun,
        left_out=house.ledger.transcripts.left_out(name),
        tenants=tenants,
        probes=comparison.as_json(),
    )


class _Mover(Hold):
    """Holds the lease of a move to another store.

    `collection` is as it is under the lease: nobody else can give it another store.
    """

    def __init__(self, house: House, name: str, to: str, phase: Phase) -> None:
        self._house, self._moves, self._phase = house, house.ledger.moves, phase
        self._name, self._to = name, to
        move, self.collection = self._begin()
        super().__init__(self._moves, move)

    def drop(self, store: Store) -> None:
        """Drop the collection's copy in a store; LeaseLost where somebody else may be using it."""
        self.renew()
        store.drop_collection(self._name)

    def pause(self) -> None:
        """From now on no upsert of the collection is begun, until the switch or the end."""
        self._moves.pause(self.move)

    def switch(self, source: str) -> None:
        """Make the target the collection's store."""
        self.check()
        self.move = self._moves.switch(self.move, source)

    def clear(self, keep: bool, grace: float) -> None:
        """Drop the copy that is left over, when no search can be at it any more."""
        if not keep:
            self._phase(f"Switched. Searches at the old store have {grace:.0f} s to end")
            time.sleep(grace)
            self.drop(self._house.store_of(self.move.store))
        self._moves.end(self.move)

    def _begin(self) -> tuple[Move, CollectionRecord]:
        """Take the lease, clean up after another move that did not end, and begin or go on.

        The lease may have been waited for: what it moves is looked at under it.
        """
        while True:
            move = take(self._moves, self._name, self._to)
            try:
                collection = self._house.ledger.collections.get(self._name)
                here = collection.store == self._to
                if here if move.switched else move.store == self._to and not here:
                    return move, collection
                if move.store not in (self._to, collection.store):
                    self._house.store_of(move.store).drop_collection(self._name)
                self._moves.end(move)
            except BaseException:
                self._moves.release(move)
                raise
            if here:
                raise Conflict(
                    f"collection {self._name!r} is kept in store {self._to!r} already",
                    hint="Name another store with --to.",
                )


class _Passage:
    """From one store to the other."""

    def __init__(
        self,
        house: House,
        collection: CollectionRecord,
        source: Store,
        target: Store,
        mover: _Mover,
        progress: Progress,
    ) -> None:
        self._ledger, self._collection, self._name = house.ledger, collection, collection.name
        self._source, self._target = source, target
        self._mover, self._progress = mover, progress
        self._total = sum(n for n, _ in self._ledger.transcripts.counts(self._name).values())

    def prepare(self) -> None:
        """Make the collection in the target; a copy that was kept there is out of date and goes."""
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
        self._target.ensure_schema(self._collection.schema)
        self.make_tenants()

    def make_tenants(self) -> None:
        """Make the ledger's tenants in the target."""
        for tenant in self._ledger.tenants.all(self._name):
            self._target.ensure_tenant(self._name, tenant)

    def copy_most(self) -> None:
        """Copy in passes until one finds little to do."""
        for _ in range(MOST_PASSES):
            if self._pass() <= FEW:
                return

    def copy_rest(self) -> None:
        """Wait for upserts that run, then copy until nothing differs."""
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
        """Compare counts and answers; CopyDiffers where they are not alike."""
        tenants, differing = self._compare_counts()
        comparison = Comparison()
        for probe in draw(self._ledger, self._source, self._name):
            self._mover.check()
            one = ask(self._ledger, self._source, self._name, probe)
            other = dict(ask(self._ledger, self._target, self._name, probe))
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
        """Counts of each tenant, and where they differ when deletions have gone through."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            self._remove_gone()
            live = self._ledger.transcripts.counts(self._name)
            held = store_counts(self._ledger, self._target, self._name)
            wanted = {tenant: live.get(tenant, (0, 0))[1] for tenant in held}
            if held == wanted or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        there = store_counts(self._ledger, self._source, self._name)
        tenants = {
            tenant: {
                "documents": live.get(tenant, (0, 0))[0],
                "chunks": wanted[tenant],
                f"chunks in {self._source.kind}": there.get(tenant, 0),
                f"chunks in {self._target.kind}": held[tenant],
            }
            for tenant in held
        }
        return tenants, [
            f"tenant {tenant!r} has {held[tenant]} chunks, not {wanted[tenant]}"
            for tenant in held
            if held[tenant] != wanted[tenant]
        ]

    def _pass(self) -> int:
        """Copy what differs; returns how many documents that were."""
        copied, after = 0, ""
        while page := self._ledger.moves.stale(self._name, self._target.kind, after=after):
            for group in grouped(self._collected(page)):
                copied += self._copy(group)
            after = page[-1]
        self._remove_gone()
        return copied

    def _collected(self, document_ids: list[str]) -> Iterator[Parcel]:
        """Take documents out of the source, but those that are changing."""
        for document_id in document_ids:
            self._mover.check()
            parcel = collect(self._ledger, self._source, self._name, document_id, settled=True)
            if parcel is not None:
                yield parcel

    def _copy(self, group: list[Parcel]) -> int:
        """Copy documents of one tenant; returns how many, but those that changed meanwhile."""
        moves, to = self._ledger.moves, self._target.kind
        moves.note(self._name, to, {p.transcript.document_id: (0, 0) for p in group})
        try:
            put(self._target, self._name, group, self._mover.check)
        except (CopyDiffers, NotFound):
            if len(group) > 1:
                return sum(self._copy([parcel]) for parcel in group)
            now = self._ledger.transcripts.read(group[0].transcript.document_id)
            if now is not None and now.transcript == group[0].transcript:
                raise
            return 0  # its removal went through the target meanwhile
        copied = {p.transcript.document_id: (p.transcript.live_version, p.upserts) for p in group}
        moves.note(self._name, to, copied)
        for parcel in group:
            self._progress(self._total, len(parcel.chunks))
        return len(group)

    def _remove_gone(self) -> None:
        """Take out of the target what was deleted after it was copied, or while it was."""
        moves, to = self._ledger.moves, self._target.kind
        while gone := moves.gone(self._name, to):
            for document_id, tenant in gone:
                self._mover.check()
                try:
                    self._target.delete_document(self._name, document_id, tenant=tenant)
                except NotFound:
                    self._ledger.collections.get(self._name)  # only its tenant may be gone
                moves.forget(self._name, to, document_id)
