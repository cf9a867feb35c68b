"""Backups of an installation: what comes back, also from a killed backup, and what is thinned."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from backup_parts import Installation, installation
from pipeline_parts import Tiny, doing

from callslip.errors import BackupError, Conflict
from callslip.ingestion import provided_chunks
from callslip.ingestion.maintenance.removal import remove_documents
from callslip.ingestion.provided_chunks import ChunkScope
from callslip.readers import Reader
from callslip.stores.backup import manifest as manifests
from callslip.stores.backup.destination import Destination
from callslip.stores.backup.manifest import BLOBS, CONVERSATIONS, LEDGER, Part
from callslip.stores.backup.parts import NameSet, Writer, rows
from callslip.stores.records import CollectionSchema, VectorSpec, moment
from callslip.stores.tfidf.store import TfidfStore
from callslip.stores.transfer.bundle import record_of

pytest_plugins = ["ledger_fixtures"]

KEY = "correct horse battery"


@pytest.fixture
def open_(tmp_path: Path) -> Iterator[Any]:
    """Makes installations."""
    with ExitStack() as stack:
        yield lambda name, *given: stack.enter_context(installation(tmp_path / name, *given))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation with two documents, a deleted one, a webhook and a conversation.

    The tests of this file share it, and some add documents.
    """
    with installation(tmp_path_factory.mktemp("backup") / "here") as made:
        fill(made)
        yield made


def fill(made: Installation) -> None:
    made.collection()
    made.publish("a.txt", "alpha", "beta")
    made.publish("a.txt", "alpha", "gamma")
    made.publish("휴가.txt", "휴가", "출산", year=2024, when="2024-02-29")
    gone = made.publish("gone.txt", "delta")
    made.ledger.documents.delete(gone.document_id)
    made.ledger.webhooks.create("https://example.org/hook", "s" * 32, ["document.live"])
    made.converse("ann", "an answer ☃")


@pytest.fixture
def to(tmp_path: Path) -> Destination:
    return Destination(str(tmp_path / "backups"), make=True)


def contents(place: Installation) -> dict[str, Any]:
    """The visible chunks, and the rows of the ledger without what a restore changes.

    A restore writes every chunk anew, so each has the time of its live version as `updated_at`.
    """
    found = {}
    for document_id, _ in place.ledger.transcripts.ids("papers"):
        snapshot = place.ledger.transcripts.read(document_id)
        assert snapshot
        chunks = place.store.get_chunks(
            "papers", sorted(snapshot.transcript.chunks), include_vector=True, include_terms=True
        )
        plain = [{**c.__dict__, "vector": [round(float(x), 5) for x in c.vector]} for c in chunks]  # type: ignore[union-attr]
        assert all(
            moment(snapshot.transcript.live.created_at) >= c.pop("updated_at") for c in plain
        )
        found[document_id] = (snapshot.transcript, plain)
    with place.ledger.tables.snapshot() as snapshot_:
        rows = {
            name: list(snapshot_.rows(name))
            for name in ("documents", "versions", "chunks", "events", "webhooks", "conversations")
        }
    return {"chunks": found, "rows": rows}


def test_everything_comes_back_on_another_store_and_ledger(
    here: Installation, open_: Any, ledger_url: str, tmp_path: Path
) -> None:
    to = Destination(str(tmp_path / "secret"), KEY, make=True)
    made = here.back_up(to)
    known = len(here.ledger.transcripts.ids("papers"))
    assert (made.documents, made.conversations, made.gone, made.missing) == (known, 1, [], [])
    there = open_("there", TfidfStore(tmp_path / "tfidf"), ledger_url)
    report = there.restore(to)
    assert (report.faults, report.lost, report.documents) == ([], [], known)
    assert contents(there) == contents(here)
    assert report.probes["papers"]["vector"]["overlap@10"] == 1
    assert there.ledger.collections.get("papers").store == "tfidf"
    _, turns = there.threads.turns("papers", "", "ann")
    assert [turn["text"] for turn in turns] == ["an answer ☃"]
    before = here.ledger.events.corpus_version("papers", "")
    there.publish("new.txt", "epsilon")
    assert there.ledger.events.corpus_version("papers", "") > before
    with pytest.raises(Conflict, match="not empty"):
        there.restore(to)


def test_named_vectors_come_back_from_the_artifacts(open_: Any, to: Destination) -> None:
    here = open_("with-names")
    second: Any = Tiny()
    second.model = "second"
    here.steps = replace(here.steps, further={"bge": second})
    spec = VectorSpec(4)
    schema = CollectionSchema("papers", spec, {"meaning": replace(spec, embedder="second")})
    here.ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="lower")
    here.store.ensure_schema(schema)
    here.publish("a.txt", "alpha", "beta")
    here.back_up(to)
    there = open_("there")
    report = there.restore(to)
    assert (report.faults, report.lost) == ([], [])
    assert there.ledger.collections.get("papers").models == {"": "tiny", "meaning": "second"}
    ids = there.store.chunk_ids("papers")
    assert ids == here.store.chunk_ids("papers")
    assert ids["vector:meaning"] == ids["vector"]
    assert len(ids["vector"]) == 4
    assert report.probes["papers"]["vector:meaning"]["overlap@10"] == 1


def test_from_postgresql_to_sqlite_and_back(
    here: Installation, to: Destination, open_: Any, ledger_url: str, tmp_path: Path
) -> None:
    """The way there is the test above; this one reads what it wrote."""
    here.back_up(to)
    there = open_("there", None, ledger_url)
    there.restore(to)
    other = Destination(str(tmp_path / "other"), make=True)
    there.back_up(other)
    again = open_("again")
    assert again.restore(other).faults == []
    assert contents(again) == contents(here)


def test_what_a_reader_may_not_read_is_left_out_after_a_restore(
    to: Destination, open_: Any
) -> None:
    here, there = open_("here"), open_("there")
    here.collection()
    here.publish("a.txt", "alpha")
    item = here.publish("board.txt", "omega")
    for document_id, version in here.ledger.readers.set(item.document_id, ("group:board",)):
        assert here.ledger.leases.reopen(document_id, version, "upsert")
        doing(here.steps)(document_id, version, "upsert")
    here.back_up(to)
    assert there.restore(to).faults == []
    assert contents(there) == contents(here)
    bob = there.ledger.for_reader(Reader("bob", frozenset({"user:bob"})))
    unreadable = bob.readers.unreadable("papers", "")
    for place in (here, there):
        readable = place.store.count("papers", unreadable.left_out_of(None))
        assert 0 < readable < place.store.count("papers")


def test_only_what_is_new_is_copied(here: Installation, to: Destination) -> None:
    first = here.back_up(to)
    assert 0 < first.written <= first.files
    assert here.back_up(to).written == 0
    here.publish("new.txt", "zeta")
    again = here.back_up(to)
    assert (again.written, again.files) == (6, first.files + 6)


class Killed(BaseException):
    """As SIGKILL."""


class Mortal(Destination):
    """A destination whose process is killed at its n-th write."""

    left = 10**9

    def _write(self, path: str, content: Any) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed
        super()._write(path, content)


@pytest.mark.parametrize("calls", [1, 12, 20])
def test_a_killed_backup_is_none_and_the_next_one_continues(
    here: Installation, to: Destination, open_: Any, calls: int
) -> None:
    mortal = Mortal(to.url)
    mortal.left = calls
    with pytest.raises(Killed):
        here.back_up(mortal)
    assert to.names(manifests.FOLDER) == []
    before = len(list(to.objects()))
    here.back_up(to)
    assert before == min(calls, before)
    there = open_("there")
    assert there.restore(to).faults == []
    assert contents(there) == contents(here)


@pytest.mark.parametrize("calls", [0, 9])
def test_a_killed_restore_is_finished_by_the_same_call(
    here: Installation, to: Destination, open_: Any, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.back_up(to)
    there = open_("there")
    left = calls

    def write(*given: Any, **more: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        return real(*given, **more)

    for owner, name in ((there.backend.blobs, "write"), (there.store, "batch_upsert_chunks")):
        real = getattr(owner, name)
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, write)
            with pytest.raises(Killed):
                there.restore(to)
        left = 0
    report = there.restore(to)
    assert (report.faults, report.lost) == ([], [])
    assert contents(there) == contents(here)


def test_chunks_that_only_the_store_has_are_in_the_backup(
    here: Installation, to: Destination, open_: Any
) -> None:
    scope = ChunkScope(here.backend, here.store.kind, "papers")
    provided = here.store.get_chunks(
        "papers",
        sorted(here.ledger.purge.chunk_ids([here.ledger.transcripts.ids("papers")[0][0]])),
        include_vector=True,
        include_terms=True,
    )
    records = [replace(record_of(chunk), chunk_id=f"own-{n}") for n, chunk in enumerate(provided)]
    provided_chunks.put(scope, "faq", records, 10)
    lost = here.publish("artifact gone", "eta")
    name = next(n for n in here.backend.blobs.names(lost.document_id) if n.startswith("embed"))
    (here.folder / "blobs" / "documents" / lost.document_id / name).unlink()
    here.back_up(to)
    there = open_("there")
    report = there.restore(to)
    assert (report.faults, report.lost) == ([], [])
    assert contents(there) == contents(here)


@pytest.mark.parametrize(
    ("half", "change"), [("vector", -1), ("keyword", -1), ("vector", 1), ("keyword", 1)]
)
def test_a_half_that_has_other_chunks_than_the_ledger_is_named(
    here: Installation, to: Destination, open_: Any, half: str, change: int
) -> None:
    here.back_up(to)
    there = open_("there")
    chunk_ids = there.store.chunk_ids
    document_id = here.ledger.transcripts.ids("papers")[0][0]
    (one, *_) = sorted(here.ledger.chunks.live_ids(document_id))

    def changed(collection: str, of: str | None = None, *, tenant: str = "") -> dict[str, set[str]]:
        halves = chunk_ids(collection, of, tenant=tenant)
        if of in (None, document_id):
            halves[half] = halves[half] - {one} if change < 0 else halves[half] | {"more"}
        return halves

    def maintain() -> None:  # after everything was written and compared
        there.store.chunk_ids = changed

    there.store.maintain = maintain
    report = there.restore(to)
    known = sum(chunks for _, chunks in there.ledger.transcripts.counts("papers").values())
    assert report.faults == [
        f"papers: the {half} half has {known + change} chunks, the ledger {known}"
    ]
    assert report.lost == ([document_id] if change < 0 else [])


def test_a_document_that_is_deleted_meanwhile_stays_deleted(
    here: Installation, to: Destination, open_: Any
) -> None:
    victim = here.publish("victim", "theta")

    def delete(phase: str, _done: int) -> None:
        if phase == "ledger" and here.ledger.documents.get(victim.document_id).deleted_at is None:
            here.ledger.documents.delete(victim.document_id)
            remove_documents(here.backend, [victim.document_id])

    made = here.back_up(to, progress=delete)
    assert made.gone == [victim.document_id]
    there = open_("there")
    report = there.restore(to)
    assert (report.faults, report.lost) == ([], [])
    assert there.ledger.documents.get(victim.document_id).deleted_at is not None


def test_old_backups_and_their_objects_go(here: Installation, to: Destination, open_: Any) -> None:
    first = here.back_up(to)
    document_id = here.ledger.transcripts.ids("papers")[0][0]
    here.ledger.documents.delete(document_id)
    remove_documents(here.backend, [document_id])
    second = here.back_up(to, keep=1)
    assert to.names(manifests.FOLDER) == [second.name]
    assert second.removed_objects > 5
    assert first.name != second.name
    there = open_("there")
    assert there.restore(to).faults == []


def test_a_backup_of_another_revision_and_a_damaged_one_are_refused(
    here: Installation, to: Destination, open_: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = here.back_up(to)
    there = open_("there")
    with monkeypatch.context() as patch:
        patch.setattr("callslip.stores.backup.restoring.REVISION", 10_000)
        with pytest.raises(BackupError, match="revision"):
            there.restore(to)
    manifest = to.load(manifests.FOLDER, made.name)
    to.write(manifests.FOLDER, made.name, manifest | {"last_event": 0})
    with pytest.raises(BackupError, match="damaged"):
        there.restore(to)
    assert there.ledger.tables.is_empty()


OUTSIDE = "../../outside"

HOSTILE: list[tuple[str, Callable[[list[Any]], list[Any]]]] = [
    (BLOBS, lambda row: [row[0], OUTSIDE, *row[2:]]),
    (BLOBS, lambda row: [OUTSIDE, *row[1:]]),
    (BLOBS, lambda row: [*row[:4], "../../backup.json"]),
    (BLOBS, lambda row: [*row[:2], 3, *row[3:]]),
    (BLOBS, lambda row: [*row[:2], "large", *row[3:]]),
    (BLOBS, lambda row: row[:2]),
    (BLOBS, lambda row: [[], {}, None, 1, 2]),
    (f"{LEDGER}documents", lambda row: [{"no": "id"}] * len(row)),
    (f"{LEDGER}documents", lambda row: [2**70] * len(row)),
    (f"{LEDGER}documents", lambda row: [None] * len(row)),
    (f"{LEDGER}collections", lambda row: [7] * len(row)),
    (CONVERSATIONS, lambda row: [row[0], "no base64"]),
    (CONVERSATIONS, lambda row: [row[0], "AAAA"]),
]
"""Parts, and what a hostile backup has instead of their rows."""


def test_a_hostile_backup_is_refused(
    here: Installation, to: Destination, open_: Any, tmp_path: Path
) -> None:
    manifest, there = manifests.read(to, here.back_up(to).name), open_("there")

    def refuse(there: Installation, **parts: Part) -> None:
        name = manifests.write(to, replace(manifest, parts={**manifest.parts, **parts}))
        with pytest.raises(BackupError):
            there.restore(to, name)
        to.remove(manifests.FOLDER, name)
        for folder in (*there.backend.blobs.document_ids(), "restores"):
            there.backend.blobs.delete(folder)

    webhooks = f"{LEDGER}webhooks"
    columns = ["x"] * len(manifest.part(webhooks).columns)
    refuse(there, **{webhooks: replace(manifest.part(webhooks), columns=columns)})
    for number, (part, change) in enumerate(HOSTILE):
        of = manifest.part(part)
        with NameSet() as present:
            writer = Writer(to, present, of.columns)
            for row in rows(to, of):
                writer.add(change(row))
            # Conversations are restored after the ledger, so these need an installation each.
            into = open_(str(number)) if part == CONVERSATIONS else there
            refuse(into, **{part: writer.part()})
    assert there.ledger.tables.is_empty()
    with pytest.raises(BackupError, match="no part"):
        replace(manifest, parts={}).part(BLOBS)
    assert not list(tmp_path.rglob("outside*"))
