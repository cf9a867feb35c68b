"""Importing an archive: all of it is looked over before the first document arrives.

A document arrives blobs first, then its chunks, each checked, and what the ledger says last, in one
transaction: so it is seen at once and whole. The same call again goes on where one stopped.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from callslip.errors import CollectionNotFound, Conflict, CopyDiffers
from stores.contract import Store
from stores.ledger import CollectionRecord, Ledger
from stores.ledger.vectors import text_hash
from stores.records import CollectionSchema
from stores.schemas import check_schema
from stores.transfer.archive import Archive, End
from stores.transfer.counts import occupied, store_counts
from stores.transfer.hold import Hold, take
from stores.transfer.house import House, Progress, Report
from stores.transfer.parcel import Parcel, fault_of, grouped, put
from stores.transfer.probes import Comparison, ask, best_of_both
from stores.transfer.soundness import look_over


def import_archive(
    house: House, path: Path, *, name: str | None, to: str | None, default: str, progress: Progress
) -> Report:
    """Make the archive's collection here, under its own name or `name`, in the store `to`.

    Without `to` it goes to the store that a collection of this name has, else to `default`.
    ArchiveError where the archive is not whole and sound, Conflict where something else is in its
    place: nothing was written then. CopyDiffers where this side does not answer alike.
    """
    begun = time.monotonic()
    with closing(Archive(path)) as archive:
        end, head = archive.end(), archive.head
        schema = CollectionSchema(name or head.name, head.default, head.named, head.tenants)
        check_schema(schema)
        known: CollectionRecord | None = None
        with suppress(CollectionNotFound):
            known = house.ledger.collections.writable(schema.name)
        kind = to or (known.store if known else default)
        store = house.store_of(kind)
        store.ping()
        for tenant in ("", *end.tenants):
            store.check_names(schema.name, tenant)
        look_over(house, archive, end, schema)
        if known is None and occupied(store, schema.name):
            raise Conflict(
                f"store {kind!r} holds a collection {schema.name!r} that the ledger does not know",
                hint="Import under another name with --as, or into another store with --to.",
            )
        if known is not None and known.analyzer != head.analyzer:
            raise Conflict(
                f"collection {schema.name!r} has terms of analyzer {known.analyzer},"
                f" the archive's are of {head.analyzer}",
                hint="Import under another name with --as.",
            )
        house.ledger.collections.create(
            schema,
            store=kind,
            embedder=head.embedder,
            analyzer=head.analyzer,
            options=None if known else head.options,
        )
        with _held(house, schema.name, kind) as hold:
            store.ensure_schema(schema)
            house.ledger.collections.has_properties(schema.name, end.property_names)
            for tenant in filter(None, end.tenants):
                house.ledger.tenants.create(schema.name, tenant)
                store.ensure_tenant(schema.name, tenant)
            arrival = _Arrival(house, store, schema.name, head.embedder, progress, hold)
            arrival.total = sum(counts["documents"] for counts in end.tenants.values())
            for group in grouped(arrival.awaited(archive, end, schema)):
                arrival.take(group)
            report = arrival.report(end, time.monotonic() - begun)
            house.ledger.moves.end(hold.move)
        return report


def _held(house: House, name: str, kind: str) -> Hold:
    """The lease under which nobody moves the collection away; Conflict where it is being moved."""
    moves = house.ledger.moves
    move = take(moves, name, kind)
    try:
        home = house.ledger.collections.get(name).store
        if home != kind:
            raise Conflict(f"collection {name!r} was moved to store {home!r} just now")
        if move.switched or move.store != kind:
            to = home if move.switched else move.store
            raise Conflict(
                f"a move of collection {name!r} was broken off",
                hint=f"Finish it first: callslip migrate {name} --to {to}",
            )
    except BaseException:
        moves.release(move)
        raise
    return Hold(moves, move)


class _Arrival:
    def __init__(
        self,
        house: House,
        store: Store,
        collection: str,
        embedder: str,
        progress: Progress,
        hold: Hold,
    ) -> None:
        self._house, self._store, self._hold = house, store, hold
        self._collection, self._embedder = collection, embedder
        self._progress, self.total = progress, 0
        self._documents = self._chunks = 0
        self._outcomes: Counter[str] = Counter()

    def awaited(self, archive: Archive, end: End, schema: CollectionSchema) -> Iterator[Parcel]:
        """The documents to be written, their blobs written; those that are here are counted."""
        for entry in archive.entries():
            if not end.counts(entry.card):
                continue
            parcel = entry.parcel(schema)
            standing = self._house.ledger.transcripts.standing(self._collection, parcel.transcript)
            self._outcomes[standing] += 1
            if standing in ("newer", "deleted"):
                self._progress(self.total, 0)
            elif standing == "same" and not fault_of(self._store, self._collection, parcel):
                self._count(parcel)
            else:
                for name in entry.blob_names():
                    with entry.blob(name) as stream:
                        self._house.blobs.write(entry.document_id, name, stream)
                yield parcel

    def take(self, group: list[Parcel]) -> None:
        """Let documents of one tenant arrive, or mend them where they are here already."""
        moves, kind = self._house.ledger.moves, self._store.kind
        moves.note(self._collection, kind, {p.transcript.document_id: (0, 0) for p in group})
        put(self._store, self._collection, group, self._hold.check)
        for parcel in group:
            transcript = parcel.transcript
            if self._house.ledger.transcripts.standing(self._collection, transcript) == "new":
                self._enter(parcel)
            else:
                moves.forget(self._collection, kind, transcript.document_id)
            self._count(parcel)

    def _count(self, parcel: Parcel) -> None:
        self._documents += 1
        self._chunks += len(parcel.chunks)
        self._progress(self.total, len(parcel.chunks))

    def _enter(self, parcel: Parcel) -> None:
        """Make it seen; a vector is kept for other documents only under the hash of its text."""
        ledger, transcript = self._house.ledger, parcel.transcript
        ledger.vectors.put(
            self._embedder,
            {
                known.text_hash: chunk.vector
                for chunk in parcel.chunks
                if (known := transcript.chunks[chunk.chunk_id]).text_hash == text_hash(chunk.body)
            },
        )
        ledger.transcripts.write(self._collection, transcript, self._hold.move)

    def report(self, end: End, seconds: float) -> Report:
        """Compare both sides; CopyDiffers where they do not hold or answer the same."""
        ledger, kind = self._house.ledger, self._store.kind
        here = ledger.transcripts.counts(self._collection)
        held = store_counts(ledger, self._store, self._collection)
        tenants = {
            tenant: {
                **counts,
                "documents here": here.get(tenant, (0, 0))[0],
                "chunks here": here.get(tenant, (0, 0))[1],
                f"chunks in {kind}": held.get(tenant, 0),
            }
            for tenant, counts in end.tenants.items()
        }
        notes = [
            f"{count} of its documents {what}"
            for what, count in (
                ("changed here since, and stay so", self._outcomes["newer"]),
                (
                    "deleted here since, and stay so;"
                    " to have them back, delete the collection and import again",
                    self._outcomes["deleted"],
                ),
            )
            if count
        ]
        comparison = Comparison()
        if notes or sum(documents for documents, _ in here.values()) != self._documents:
            notes.append("The collection is not what the archive was: probes were not compared.")
        else:
            self._compare(end, tenants, comparison)
        return Report(
            collection=self._collection,
            documents=self._documents,
            chunks=self._chunks,
            seconds=seconds,
            skipped=self._outcomes["same"],
            left_out=end.left_out,
            tenants=tenants,
            probes=comparison.as_json(),
            notes=notes,
        )

    def _compare(
        self, end: End, tenants: dict[str, dict[str, int]], comparison: Comparison
    ) -> None:
        ledger, kind = self._house.ledger, self._store.kind
        for asked in end.probes:
            answers = dict(ask(ledger, self._store, self._collection, asked.probe))
            if end.keyword_score != self._store.keyword_score:
                answers.pop("keyword", None)
            wanted = {leg: _here(ledger, ids) for leg, ids in asked.answers.items()}
            best = best_of_both(self._store, self._collection, asked.probe, wanted, answers)
            comparison.add(asked.probe, wanted, answers, best)
        faults = [
            f"tenant {tenant!r} has {counts[f'chunks in {kind}']} chunks, not {counts['chunks']}"
            for tenant, counts in tenants.items()
            if counts["chunks"] != counts[f"chunks in {kind}"]
        ]
        if faults := faults + comparison.faults():
            raise CopyDiffers(f"store {kind!r} differs from the archive: {'; '.join(faults)}")


def _here(ledger: Ledger, chunk_ids: list[str]) -> list[str]:
    """Those that arrived: what came to the source after its documents were written is not here."""
    visible = ledger.chunks.visible(chunk_ids)
    return [i for i in chunk_ids if i in visible]
