"""Archives: what goes in comes out, and what is no sound archive changes nothing."""

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from long_forms import kill_points
from moving import COLLECTION, NEVER, Fate, Killed, Site, fill, mortal, run_out, silent

from callslip.errors import ArchiveError, Conflict, CopyDiffers, LeaseLost, MoveError
from callslip.messages.options import Options
from callslip.readers import Reader
from callslip.stores.audit.comparison import audit_scope, audit_scopes
from callslip.stores.records import BatchOutcome
from callslip.stores.transfer import Report, export_collection, import_archive, migrate, move_lease
from callslip.stores.transfer.archive_format import FORMAT_WITH_READERS
from callslip.stores.transfer.archive_reader import Archive


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Site]:
    """Where the collection is."""
    (tmp_path / "here").mkdir()
    site = Site(tmp_path / "here")
    yield site
    site.ledger.close()


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Site]:
    """Another installation."""
    (tmp_path / "there").mkdir()
    site = Site(tmp_path / "there")
    yield site
    site.ledger.close()


def take(site: Site, path: Path, **more: Any) -> Report:
    """Import."""
    given: dict[str, Any] = {"name": None, "to": None, "default": "other", "progress": silent}
    return import_archive(site.backend, path, **given | more)


@pytest.mark.parametrize("tenants", [False, True])
def test_a_collection_is_the_same_after_export_and_import(
    here: Site, there: Site, tmp_path: Path, tenants: bool
) -> None:
    fill(here, tenants=tenants)
    options = Options.model_validate({"scrub": "text", "dictionary": {"출산장려금": []}})
    here.ledger.collections.set_options(COLLECTION, options)
    path = tmp_path / "papers.tar"
    out = export_collection(here.backend, COLLECTION, path, silent)
    assert (out.documents, out.chunks, out.left_out) == ((8, 20, 1) if tenants else (4, 10, 1))
    report = take(there, path)
    assert (report.documents, report.chunks, report.skipped) == (out.documents, out.chunks, 0)
    assert there.state() == here.state()
    assert there.ledger.tenants.all(COLLECTION) == here.ledger.tenants.all(COLLECTION)
    assert there.ledger.collections.property_names(
        COLLECTION
    ) == here.ledger.collections.property_names(COLLECTION)
    assert report.probes["vector"]["overlap@10"] == 1
    assert report.probes["vector"]["recall@10"] == [1, 1]
    known = there.ledger.collections.get(COLLECTION)
    assert (known.embedder, known.analyzer, known.store) == ("tiny", "1", "other")
    assert known.options == options


def test_versions_and_vectors_survive_so_that_the_next_version_computes_only_what_is_new(
    here: Site, there: Site, tmp_path: Path
) -> None:
    fill(here)
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    take(there, tmp_path / "a.tar", to="memory")
    document_id = there.ledger.documents.id_of(COLLECTION, "versions")
    assert document_id
    found = there.ledger.documents.get(document_id)
    assert (found.state, found.live_version) == ("live", 3)
    snapshot = there.ledger.transcripts.read(document_id)
    assert snapshot
    firsts = {c.split("-")[1]: row.first_version for c, row in snapshot.transcript.chunks.items()}
    assert firsts == {"kept": 1, "third": 3, "more": 3}
    hashes = [row.text_hash for row in snapshot.transcript.chunks.values()]
    assert len(there.ledger.vectors.get([("tiny", each) for each in hashes])) == 3
    again = there.submit("versions", "kept third more")
    assert not again.fresh
    item = there.publish("versions", "kept fourth")
    assert item.version == 4
    assert len(there.ledger.chunks.live_ids(document_id)) == 2


def test_an_import_again_finds_everything_and_mends_what_the_store_lost(
    here: Site, there: Site, tmp_path: Path
) -> None:
    fill(here)
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    take(there, tmp_path / "a.tar")
    assert take(there, tmp_path / "a.tar").skipped == 4
    there.stores["other"].delete_chunks(COLLECTION, list(there.held("other"))[:1])
    there.stores["other"].delete_chunks(COLLECTION, list(there.held("other"))[:1])
    take(there, tmp_path / "a.tar")
    assert there.state() == here.state()


def test_what_was_changed_or_deleted_after_an_import_stays_so(
    here: Site, there: Site, tmp_path: Path
) -> None:
    fill(here)
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    take(there, tmp_path / "a.tar")
    there.publish("one", "other words")
    gone = there.ledger.documents.id_of(COLLECTION, "two")
    assert gone
    there.ledger.documents.delete(gone)
    before = there.state()
    report = take(there, tmp_path / "a.tar")
    assert report.documents == 2
    assert len(report.notes) == 3
    assert there.state() == before


def test_documents_keep_their_ids_so_that_one_ledger_takes_them_once(
    here: Site, tmp_path: Path
) -> None:
    fill(here)
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    with pytest.raises(Conflict, match="is here already, in collection 'papers'"):
        take(here, tmp_path / "a.tar", name="copy")
    assert [c.name for c, _ in here.ledger.collections.all()] == [COLLECTION]


def test_a_name_that_another_document_has_is_a_conflict(
    here: Site, there: Site, tmp_path: Path
) -> None:
    fill(here)
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    there.make(store="other")
    there.publish("one", "my own")
    with pytest.raises(Conflict, match="is here already"):
        take(there, tmp_path / "a.tar")
    assert there.ledger.documents.id_of(COLLECTION, "one")


def test_a_collection_that_only_the_store_knows_is_not_written_over(
    here: Site, there: Site, tmp_path: Path
) -> None:
    fill(here)
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    there.make(store="other")
    there.publish("one", "my own")
    lost = Site(tmp_path / "lost", there.stores)
    with pytest.raises(Conflict, match="does not know"):
        take(lost, tmp_path / "a.tar")
    assert lost.ledger.collections.all() == []


def test_after_an_import_that_the_store_refuses_the_collection_is_audited_and_imported_again(
    here: Site, there: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(here)
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    with monkeypatch.context() as patched:
        patched.setattr(
            there.stores["other"],
            "batch_upsert_chunks",
            lambda _, chunks, **__: BatchOutcome((), {c.chunk_id: "too odd" for c in chunks}),
        )
        with pytest.raises(MoveError, match="too odd"):
            take(there, tmp_path / "a.tar")
    assert not there.ledger.inventory.moving(COLLECTION)
    (scope,) = audit_scopes(there.ledger, there.stores)
    (finding,) = audit_scope(there.ledger, scope).findings
    assert (finding.kind, finding.certain) == ("orphan-documents", True)
    take(there, tmp_path / "a.tar")
    assert there.state() == here.state()


def test_a_file_in_a_folder_that_is_not_there_is_an_error(here: Site, tmp_path: Path) -> None:
    here.make()
    with pytest.raises(MoveError, match="cannot be written: No such file"):
        export_collection(here.backend, COLLECTION, tmp_path / "nowhere" / "a.tar", silent)


def test_a_collection_is_not_moved_while_documents_arrive(
    here: Site, there: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(here)
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    refused: list[str] = []

    def move(_total: int, _chunks: int) -> None:
        if refused:
            return
        try:
            migrate(there.backend, COLLECTION, "memory", keep=False, grace=0, progress=silent)
        except Conflict as error:
            refused.append(str(error))

    monkeypatch.setattr(move_lease, "LEASE_SECONDS", 5.0)  # so long does the refused one wait
    take(there, tmp_path / "a.tar", progress=move)
    assert refused == ["collection 'papers' is being moved by another process"]
    assert there.state() == here.state()


def test_documents_do_not_arrive_where_a_collection_is_being_moved(
    here: Site, there: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(here)
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    there.make(store="other")
    before = there.state()
    moves = there.ledger.moves
    lease = moves.take(COLLECTION, "memory", lease_seconds=60)
    monkeypatch.setattr(move_lease, "LEASE_SECONDS", 0.0)
    with pytest.raises(Conflict, match="is being moved by another process"):
        take(there, tmp_path / "a.tar")
    moves.release(lease)
    with pytest.raises(Conflict, match="was broken off"):
        take(there, tmp_path / "a.tar")
    assert there.state() == before
    assert there.held("other") == set()


def test_an_import_that_stood_still_while_the_collection_was_moved_writes_no_more(
    here: Site, there: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(here)
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    monkeypatch.setattr(move_lease.MoveLeaseKeeper, "_renew_once", lambda *_: [None])
    arrived: list[int] = []

    def move(_total: int, chunks: int) -> None:
        arrived.append(chunks)
        if len(arrived) == 2:
            run_out(there)
            migrate(there.backend, COLLECTION, "memory", keep=False, grace=0, progress=silent)

    with pytest.raises(LeaseLost):
        take(there, tmp_path / "a.tar", progress=move)
    assert there.ledger.collections.get(COLLECTION).store == "memory"
    live = {c for state in there.state().values() for c in state[0].chunks}
    assert there.held("memory") == live
    take(there, tmp_path / "a.tar", to="memory")
    assert there.state() == here.state()


def test_an_empty_collection_moves_too(here: Site, there: Site, tmp_path: Path) -> None:
    here.make()
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    report = take(there, tmp_path / "a.tar")
    assert (report.documents, report.probes) == (0, {})
    assert there.stores["other"].schema(COLLECTION) == here.stores["memory"].schema(COLLECTION)


def test_a_document_of_which_something_is_missing_is_named(here: Site, tmp_path: Path) -> None:
    item = fill_one(here)
    here.stores["memory"].delete_chunks(COLLECTION, list(here.held("memory"))[:1])
    with pytest.raises(MoveError, match=f"lacks chunks of document {item}"):
        export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    assert not (tmp_path / "a.tar").exists()


def fill_one(site: Site) -> str:
    """A collection of one document; its id."""
    site.make()
    return site.publish("one", "alpha beta gamma").document_id


def test_a_file_that_is_there_is_not_written_over(here: Site, tmp_path: Path) -> None:
    fill_one(here)
    (tmp_path / "a.tar").write_text("mine")
    with pytest.raises(Conflict, match="is there already"):
        export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    assert (tmp_path / "a.tar").read_text() == "mine"


def test_an_unfinished_export_of_another_collection_is_not_gone_on_with(
    here: Site, there: Site, tmp_path: Path
) -> None:
    fill_one(here)
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    (tmp_path / "a.tar").rename(tmp_path / "b.tar.partial")
    fill_one(there)
    with pytest.raises(MoveError, match="of another state"):
        export_collection(there.backend, COLLECTION, tmp_path / "b.tar", silent)
    (tmp_path / "b.tar.partial").write_text("mine")
    with pytest.raises(MoveError, match="no unfinished export"):
        export_collection(there.backend, COLLECTION, tmp_path / "b.tar", silent)


def test_documents_that_come_change_and_go_during_an_export_are_in_it_as_they_are_at_its_end(
    here: Site, there: Site, tmp_path: Path
) -> None:
    here.make()
    for n in range(8):
        here.publish(f"{n}", f"word{n} other{n}")
    ids = [i for i, _ in here.ledger.transcripts.ids(COLLECTION)]
    names = {here.ledger.documents.get(i).name: i for i in ids}
    by_id = {i: name for name, i in names.items()}
    seen = 0

    def meanwhile(_total: int, _chunks: int) -> None:
        nonlocal seen
        seen += 1
        if seen == 4:
            here.publish(by_id[ids[0]], "changed early")
            here.publish(by_id[ids[7]], "changed late")
            here.ledger.documents.delete(ids[1])
            here.ledger.documents.delete(ids[6])
            here.publish("new", "quite new")
            here.publish("newer", "quite newer")

    report = export_collection(here.backend, COLLECTION, tmp_path / "a.tar", meanwhile)
    assert report.documents == 8
    take(there, tmp_path / "a.tar")
    assert there.state() == here.state()


# Killed


@pytest.mark.long
@pytest.mark.parametrize("share", [0.001, 0.2, 0.5, 0.77, 0.9, 0.999])
def test_an_export_that_was_cut_off_anywhere_goes_on(
    here: Site, there: Site, tmp_path: Path, share: float
) -> None:
    fill(here, tenants=True)
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    content = (tmp_path / "a.tar").read_bytes()
    with closing(Archive(tmp_path / "a.tar")) as archive:
        start = archive.start
    part = content[: max(start, int(len(content) * share))]
    (tmp_path / "b.tar.partial").write_bytes(part)
    report = export_collection(here.backend, COLLECTION, tmp_path / "b.tar", silent)
    assert report.skipped == {0.001: 0, 0.999: 8}.get(share, report.skipped)
    assert report.documents == 8
    take(there, tmp_path / "b.tar")
    assert there.state() == here.state()


def test_an_export_goes_on_after_what_is_sound_where_a_power_cut_left_zeros(
    here: Site, there: Site, tmp_path: Path
) -> None:
    fill(here)
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    content = bytearray((tmp_path / "a.tar").read_bytes())
    with closing(Archive(tmp_path / "a.tar")) as archive:
        second = [entry.end for entry in archive.entries()][1]
    content[second + 512 :] = bytes(len(content) - second - 512)
    (tmp_path / "b.tar.partial").write_bytes(content)
    assert export_collection(here.backend, COLLECTION, tmp_path / "b.tar", silent).skipped == 2
    take(there, tmp_path / "b.tar")
    assert there.state() == here.state()


@pytest.mark.long
def test_an_import_that_is_killed_anywhere_is_finished_by_the_same_command(
    here: Site, there: Site, tmp_path: Path
) -> None:
    here.make(tenants=True)
    here.publish("one", "alpha beta", tenant="서울")
    here.publish("two", "gamma", tenant="서울")
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)

    def take_with(fate: Fate, folder: Path) -> None:
        folder.mkdir()
        site = Site(folder)
        given: dict[str, Any] = {"name": None, "to": None, "default": "other", "progress": silent}
        try:
            import_archive(mortal(site, fate), tmp_path / "a.tar", **given)
        except Killed:
            run_out(site)
            visible = site.state("other") if site.ledger.collections.all() else {}
            assert visible.items() <= here.state().items(), "whole documents or none"
            take(site, tmp_path / "a.tar")
        assert site.state() == here.state(), folder
        assert not site.ledger.moves.has_copies(COLLECTION, "other")
        site.ledger.close()

    spared = Fate(NEVER)
    take_with(spared, tmp_path / "spared")
    calls = NEVER - spared.left
    for point in kill_points(calls):
        take_with(Fate(point), tmp_path / str(point))
    assert calls > 30


# Unsound archives


def members(path: Path) -> dict[str, bytes]:
    """All members of a tar file; standard tools read it."""
    with tarfile.open(path) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]


def written(path: Path, content: dict[str, bytes], kind: bytes = tarfile.REGTYPE) -> Path:
    """A tar file of these members."""
    with tarfile.open(path, "w") as tar:
        for name, data in content.items():
            member = tarfile.TarInfo(name)
            member.size, member.type = len(data), kind
            tar.addfile(member, io.BytesIO(data))
    return path


def edited(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, bytes]], Any]:
    """Change the JSON of the first member whose name ends so."""

    def edit(content: dict[str, bytes]) -> None:
        key = next(k for k in content if k.endswith(name))
        content[key] = json.dumps(change(json.loads(content[key]))).encode()

    return edit


def with_file(name: str, data: bytes) -> Callable[[dict[str, bytes]], Any]:
    """Replace a file of the first document, and its size and checksum too."""
    import hashlib

    def edit(content: dict[str, bytes]) -> None:
        card = next(k for k in content if k.endswith("document.json"))
        key = f"{card.rpartition('/')[0]}/{name}"
        content[key] = data
        output = json.loads(content[card])
        output["files"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        content[card] = json.dumps(output).encode()

    return edit


def put(key: str, value: Any) -> Callable[[Any], Any]:
    """Set a value deep in JSON; the key's parts are separated by dots."""

    def change(output: Any) -> Any:
        at = output
        *path, last = key.split(".")
        for part in path:
            at = at[int(part) if part.isdigit() else part]
        at[last] = value
        return output

    return change


def renamed(old: str, new: str) -> Callable[[dict[str, bytes]], Any]:
    """Give the first member that ends so another name."""

    def edit(content: dict[str, bytes]) -> None:
        items = list(content.items())
        site = next(n for n, (k, _) in enumerate(items) if k.endswith(old))
        items[site] = (new, items[site][1])
        content.clear()
        content.update(items)

    return edit


def npz(**arrays: Any) -> bytes:
    """Arrays as a file."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def compressed(**arrays: Any) -> bytes:
    """Arrays as a compressed file."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


DEEP = b'{"chunk_id": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
LINE = {"chunk_id": "a", "body": "", "terms": "", "parent_id": "", "section": "", "heading": ""}

DAMAGES: dict[str, Callable[[dict[str, bytes]], Any]] = {
    "unknown format": edited("collection.json", put("format", 4)),
    "another program's": edited("collection.json", put("magic", "zip")),
    "a hostile name": edited("collection.json", put("name", "../../etc")),
    "a negative dimension": edited("collection.json", put("default.dimension", "2")),
    "a flipped byte of a chunk": lambda c: c.update(
        {k: v.replace(b"every", b"evary") for k, v in c.items() if k.endswith("chunks.jsonl")}
    ),
    "a flipped byte of a blob": lambda c: c.update(
        {k: v[::-1] for k, v in c.items() if "/blobs/" in k}
    ),
    "no end": lambda c: c.pop("end.json"),
    "something after the end": lambda c: c.update({"more": b""}),
    "an end that counts more": edited("end.json", put("tenants..documents", 9)),
    "an end without counts": edited("end.json", put("tenants", {})),
    "a lost document": lambda c: [c.pop(k) for k in list(c) if k.startswith(list(c)[1][:42])],
    "a lost vector file": lambda c: c.pop(next(k for k in c if k.endswith("vectors.npz"))),
    "a lost blob": lambda c: c.pop(next(k for k in c if "/blobs/" in k)),
    "a path that gets out": renamed("chunks.jsonl", "documents/../../etc/passwd"),
    "an absolute path": renamed("chunks.jsonl", "/etc/passwd"),
    "a blob that gets out": renamed("chunks.jsonl", f"documents/{'a' * 32}/blobs/../x"),
    "learned state of a later version": renamed(
        "chunks.jsonl", f"documents/{'a' * 32}/memory.jsonl"
    ),
    "deep JSON": with_file("chunks.jsonl", DEEP),
    "a line without its fields": with_file("chunks.jsonl", json.dumps(LINE).encode()),
    "no JSON": with_file("chunks.jsonl", b"\xff\xfe\n"),
    "vectors that are no arrays": with_file("vectors.npz", b"PK nothing"),
    "pickled vectors": with_file("vectors.npz", npz(vectors=np.array([{}, {}, {}, {}]))),
    "too few vectors": with_file("vectors.npz", npz(vectors=np.ones((1, 8), np.float32))),
    "vectors of another dimension": with_file(
        "vectors.npz", npz(vectors=np.ones((3, 7), np.float32))
    ),
    "vectors that are no numbers": with_file(
        "vectors.npz", npz(vectors=np.full((3, 8), np.nan, np.float32))
    ),
    "compressed vectors": with_file("vectors.npz", compressed(vectors=np.ones((3, 8), np.float32))),
    "a version that never was": edited("document.json", put("transcript.live_version", 7)),
    "a version out of range": edited("document.json", put("transcript.live_version", 2**70)),
    "a number for a name": edited("document.json", put("transcript.name", 7)),
    "no steps": edited("document.json", put("transcript.steps", [])),
    "another document's id": edited("document.json", put("transcript.document_id", "b" * 32)),
    "other chunks": edited("document.json", put("transcript.chunks", {})),
    "a property that is none": edited("document.json", put("properties", {"a": {"b": 1}})),
    "a version's property that is none": edited(
        "document.json", put("transcript.versions.0.properties", {"a": None})
    ),
    "a tenant where there are none": edited("document.json", put("transcript.tenant", "x")),
    "a name of vectors that is unknown": edited("document.json", put("vector_names", ["nose"])),
}


@pytest.mark.long
@pytest.mark.parametrize("damage", DAMAGES)
def test_an_archive_that_is_not_sound_is_named_and_changes_nothing(
    here: Site, there: Site, tmp_path: Path, damage: str
) -> None:
    fill_one(here)
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    content = members(tmp_path / "a.tar")
    DAMAGES[damage](content)
    with pytest.raises(ArchiveError) as raised:
        take(there, written(tmp_path / "b.tar", content))
    assert "alpha" not in raised.value.detail
    assert there.ledger.collections.all() == []
    assert there.stores["other"].collections() == []
    assert not (tmp_path / "there" / "blobs").exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00" * 10240, b"not a tar" * 1000, b"%PDF-1.7", b"\x1f\x8b" + b"x" * 600],
    ids=["empty", "zeros", "text", "pdf", "gzip"],
)
def test_a_file_that_is_no_tar_is_named(there: Site, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(ArchiveError, match="no archive of Callslip"):
        take(there, tmp_path / "a.tar")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_a_member_that_is_no_plain_file_is_refused(
    here: Site, there: Site, tmp_path: Path, kind: bytes
) -> None:
    fill_one(here)
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    with pytest.raises(ArchiveError, match=r"damaged|no archive"):
        take(there, written(tmp_path / "b.tar", members(tmp_path / "a.tar"), kind))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30))
def test_bytes_turned_over_anywhere_are_noticed_or_mean_nothing(
    here: Site, there: Site, tmp_path: Path, seed: int
) -> None:
    fill_one(here)
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    content = bytearray((tmp_path / "a.tar").read_bytes())
    chance = np.random.default_rng(seed)
    for site in chance.integers(0, len(content), 3):
        content[site] ^= int(chance.integers(1, 256))
    (tmp_path / "b.tar").write_bytes(content)
    try:
        take(there, tmp_path / "b.tar")
    except (ArchiveError, Conflict):
        return
    except CopyDiffers:
        return
    assert len(there.state()) == 1


def test_an_archive_carries_the_readers_of_its_documents(
    here: Site, there: Site, tmp_path: Path
) -> None:
    fill(here)
    (document_id, _), *_ = here.ledger.transcripts.ids(COLLECTION)
    here.ledger.readers.set(document_id, ("group:hr", "user:ann"))
    path = tmp_path / "papers.tar"
    export_collection(here.backend, COLLECTION, path, silent)
    with closing(Archive(path)) as archive:
        assert archive.head.format == FORMAT_WITH_READERS
    take(there, path)
    assert there.ledger.documents.get(document_id).readers == ("group:hr", "user:ann")
    bob = there.ledger.for_reader(Reader("bob", frozenset({"user:bob"})))
    hidden = bob.readers.unreadable(COLLECTION, "")
    chunks = there.ledger.chunks.live_ids(document_id)
    store = there.backend.store_of(there.ledger.collections.get(COLLECTION).store)
    everything = set(store.find_ids(COLLECTION))
    assert chunks < everything
    assert set(store.find_ids(COLLECTION, hidden.left_out_of(None))) == everything - chunks
    assert bob.chunks.visible(sorted(chunks)) == {}
