"""Runs over a folder: only what changed comes in, and nothing goes by mistake."""

import os
import shutil
import time
import uuid
from contextlib import closing
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from source_parts import Library, later, make_library, scope

from callslip.errors import BacklogFull, LeaseLost, SettingsError, StoreDown
from callslip.ingestion.sources import sync
from callslip.ingestion.sources.folder import Folder
from callslip.stores.blobs import Blobs

pytest_plugins = ["source_fixtures"]


def test_every_file_comes_in_once_with_its_provenance(library: Library, root: Path) -> None:
    source = library.add(f"file://{root}", properties={"doc_type": "law"})
    assert library.look(source, scope(root)).counts == {"new": 2}
    assert library.names() == {"src/a.txt", "src/deep/b.txt"}
    found = library.document("src/deep/b.txt")
    assert found.newest.filename == "b.txt"
    assert found.newest.properties == {"doc_type": "law", "source": f"file://{root}/deep/b.txt"}
    with library.blobs.reading(found.document_id, f"original-{found.newest.sha256}") as (_, file):
        assert file.read() == b"beta"
    assert len(library.sent) == 2


def test_a_second_run_reads_only_what_changed(
    library: Library, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = library.add(f"file://{root}")
    library.look(source, scope(root))
    later()
    (root / "a.txt").write_text("ALPHA")
    opened: list[str] = []
    real = Folder._open

    def spy(self: Folder, path: str) -> object:
        opened.append(path)
        return real(self, path)

    monkeypatch.setattr(Folder, "_open", spy)
    assert library.look(source, scope(root)).counts == {"changed": 1, "unchanged": 1}
    assert opened == [f"{root}/a.txt"]
    assert library.document("src/a.txt").newest.version == 2


def test_a_touched_file_with_the_same_content_is_no_new_version(
    library: Library, root: Path
) -> None:
    source = library.add(f"file://{root}")
    library.look(source, scope(root))
    os.utime(root / "a.txt", (1, 1))
    assert library.look(source, scope(root)).counts == {"unchanged": 2}
    assert len(library.sent) == 2


def test_what_vanished_goes_only_when_asked_to(library: Library, root: Path) -> None:
    source = library.add(f"file://{root}")
    library.look(source, scope(root))
    gone = library.document("src/a.txt").document_id
    (root / "a.txt").unlink()
    assert library.look(source, scope(root)).counts == {"unchanged": 1, "missing": 1}
    assert library.removed == []
    found = library.look(source, scope(root), delete_missing=True)
    assert found.counts == {"unchanged": 1, "deleted": 1}
    assert library.removed == [gone]
    assert library.names() == {"src/deep/b.txt"}
    assert library.look(source, scope(root)).counts == {"unchanged": 1}


def test_a_source_can_delete_what_vanished_by_its_settings(library: Library, root: Path) -> None:
    source = library.add(f"file://{root}", delete_missing=True)
    library.look(source, scope(root))
    (root / "a.txt").unlink()
    assert library.look(source, scope(root)).counts == {"unchanged": 1, "deleted": 1}


def test_an_empty_listing_deletes_nothing_unless_forced(library: Library, root: Path) -> None:
    source = library.add(f"file://{root}", delete_missing=True)
    library.look(source, scope(root))
    shutil.rmtree(root)
    root.mkdir()
    found = library.look(source, scope(root))
    assert found.failure is not None
    assert found.failure.type == "nothing-listed"
    assert library.names() == {"src/a.txt", "src/deep/b.txt"}
    assert library.look(source, scope(root), force=True).counts == {"deleted": 2}
    assert library.names() == set()


def test_a_folder_that_is_gone_deletes_nothing_even_when_forced(
    library: Library, root: Path
) -> None:
    source = library.add(f"file://{root}", delete_missing=True)
    library.look(source, scope(root))
    shutil.rmtree(root)
    found = library.look(source, scope(root), force=True)
    assert found.failure is not None
    assert found.failure.type == "source-error"
    assert len(library.names()) == 2


def test_a_part_that_cannot_be_listed_deletes_nothing(
    library: Library, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = library.add(f"file://{root}", delete_missing=True)
    library.look(source, scope(root))
    (root / "new.txt").write_text("gamma")
    opened = scope(root)
    real = opened._fs.ls

    def refuses(path: str, **more: object) -> object:
        if path.endswith("deep"):
            raise PermissionError(path)
        return real(path, **more)

    monkeypatch.setattr(opened._fs, "ls", refuses)
    found = library.look(source, opened)
    assert found.failure is not None
    assert "could not be listed" in found.failure.detail
    assert library.names() == {"src/a.txt", "src/deep/b.txt", "src/new.txt"}


def test_a_second_copy_is_told_as_a_duplicate_and_not_read_again(
    library: Library, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "copy.txt").write_text("alpha")
    source = library.add(f"file://{root}")
    assert library.look(source, scope(root)).counts == {"new": 2, "duplicate": 1}
    assert list(library.ledger.sources.failures(source.source_id)) == ["copy.txt"]
    monkeypatch.setattr(Folder, "_open", lambda *_: pytest.fail("it was read again"))
    assert library.look(source, scope(root)).counts == {"unchanged": 2, "duplicate": 1}


def test_links_hidden_files_and_pipes_are_left_out(library: Library, root: Path) -> None:
    secret = root.parent / "secret.txt"
    secret.write_text("not below the root")
    (root / "link.txt").symlink_to(secret)
    (root / "loop").symlink_to(root)
    (root / ".hidden").write_text("hidden")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("hidden too")
    os.mkfifo(root / "pipe")
    source = library.add(f"file://{root}")
    assert library.look(source, scope(root)).counts == {"new": 2}


def test_a_file_that_became_a_link_since_it_was_listed_is_not_followed(
    library: Library, root: Path
) -> None:
    secret = root.parent / "secret.txt"
    secret.write_text("not below the root")
    opened = scope(root)
    (item,) = [item for item in opened.items() if item.path == "a.txt"]
    (root / "a.txt").unlink()
    (root / "a.txt").symlink_to(secret)
    with pytest.raises(Exception, match="cannot be read"):
        opened.fetch(item, None, lambda: None)


def test_bad_files_fail_alone_and_only_once(
    library: Library, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "empty.txt").write_bytes(b"")
    (root / "large.bin").write_bytes(b"x" * 1_000_001)
    source = library.add(f"file://{root}")
    assert library.look(source, scope(root)).counts == {"new": 2, "failed": 2}
    failed = library.ledger.sources.failures(source.source_id)
    output = {path: failure.type for path, failure in failed.items()}
    assert output == {"empty.txt": "empty-file", "large.bin": "file-too-large"}
    monkeypatch.setattr(Folder, "_open", lambda *_: pytest.fail("it was read again"))
    assert library.look(source, scope(root)).counts == {"unchanged": 2, "failed": 2}


def test_a_file_that_is_being_written_waits_for_the_next_run(
    library: Library, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = library.add(f"file://{root}")
    real = Folder._open

    def grows(self: Folder, path: str) -> object:
        opened = real(self, path)
        if path.endswith("a.txt"):
            with (root / "a.txt").open("a") as file:
                file.write("more")
        return opened

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "_open", grows)
        assert library.look(source, scope(root)).counts == {"new": 1, "failed": 1}
    assert library.look(source, scope(root)).counts == {"unchanged": 1, "new": 1}


@pytest.mark.parametrize("error", [PermissionError, FileNotFoundError])
def test_a_file_that_could_not_be_read_is_tried_again_though_it_is_the_same(
    library: Library, root: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    source = library.add(f"file://{root}")
    library.look(source, scope(root))
    later()
    (root / "a.txt").write_text("ALPHA")
    (root / "new.txt").write_text("gamma")

    def refuses(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "_open", refuses)
        assert library.look(source, scope(root)).counts == {"unchanged": 1, "failed": 2}
    assert library.look(source, scope(root)).counts == {"changed": 1, "unchanged": 1, "new": 1}
    assert library.document("src/a.txt").newest.version == 2


def test_a_run_goes_on_where_a_slice_ended_and_where_a_worker_died(
    library: Library, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        (root / f"n{number:03}.txt").write_text(f"number {number}")
    source = library.add(f"file://{root}")
    crawl = library.crawl(source, scope(root), slice_seconds=0)
    assert crawl is not None
    assert sync(crawl) == "more"
    assert len(library.sent) == 1

    crawl = library.crawl(source, scope(root))
    assert crawl is not None
    crawl.sent = lambda *_: _dies_after(library, 30)
    with pytest.raises(KeyboardInterrupt):
        sync(crawl)
    assert library.crawl(source, scope(root)) is None, "the dead worker's lease still holds"
    monkeypatch.setattr(time, "time", lambda now=time.time: now() + 31)
    crawl = library.crawl(source, scope(root))
    assert crawl is not None
    assert sync(crawl) == "ended"
    found = library.again(source)
    assert (found.run, sum(found.counts.values())) == (1, 62)
    assert {library.document(name).newest.version for name in library.names()} == {1}


def test_a_run_waits_while_too_many_documents_do(library: Library, root: Path) -> None:
    source = library.add(f"file://{root}")

    def full() -> None:
        if library.sent:
            raise BacklogFull("1 document is waiting")

    library.room = full
    crawl = library.crawl(source, scope(root))
    assert crawl is not None
    assert sync(crawl) == "later"
    assert library.names() == {"src/a.txt"}
    library.sent.clear()
    crawl = library.crawl(source, scope(root))
    assert crawl is not None
    assert sync(crawl) == "ended"
    found = library.again(source)
    assert (found.run, found.counts, found.failure) == (1, {"new": 2}, None)


def _dies_after(library: Library, most: int) -> None:
    library.sent.append("")
    if len(library.sent) > most:
        raise KeyboardInterrupt


def test_a_store_that_is_down_ends_the_run_and_deletes_nothing(
    library: Library, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = library.add(f"file://{root}", delete_missing=True)
    library.look(source, scope(root))
    later()
    (root / "a.txt").unlink()
    (root / "deep" / "b.txt").write_text("BETA")

    def down(*_: object) -> None:
        raise StoreDown("the blob store cannot write")

    with monkeypatch.context() as patched:
        patched.setattr(Blobs, "write", down)
        found = library.look(source, scope(root))
        assert found.failure is not None
        assert found.failure.type == "store-down"
        assert library.removed == []
    assert library.look(source, scope(root)).counts == {"changed": 1, "deleted": 1}


def test_a_source_that_was_removed_meanwhile_takes_nothing_more(
    library: Library, root: Path
) -> None:
    source = library.add(f"file://{root}")
    crawl = library.crawl(source, scope(root))
    assert crawl is not None
    library.ledger.collections.delete("papers")
    with pytest.raises(LeaseLost):
        sync(crawl)


def test_a_bucket_is_read_through_fsspec(library: Library) -> None:
    bucket = f"memory://{uuid.uuid4().hex}"
    files = fsspec.filesystem("memory")
    files.pipe(f"{bucket}/a.txt", b"alpha")
    files.pipe(f"{bucket}/deep/b.txt", b"beta")
    opened = Folder(bucket, most_mb=1, timeout_seconds=10)
    source = library.add(bucket, delete_missing=True)
    assert library.look(source, opened).counts == {"new": 2}
    assert library.document("src/a.txt").newest.properties["source"] == f"{bucket}/a.txt"
    files.pipe(f"{bucket}/a.txt", b"ALPHA")
    files.rm(f"{bucket}/deep/b.txt")
    assert library.look(source, opened).counts == {"changed": 1, "deleted": 1}


def test_a_bucket_whose_package_is_missing_says_what_to_install() -> None:
    if find_spec("s3fs") is not None:
        pytest.skip("s3fs is installed here")
    with pytest.raises(SettingsError, match="s3 needs a package") as caught:
        Folder("s3://bucket/prefix", most_mb=1, timeout_seconds=10)
    assert "callslip[s3]" in caught.value.advice


def test_failures_are_those_of_the_last_run(library: Library, root: Path) -> None:
    (root / "empty.txt").write_bytes(b"")
    source = library.add(f"file://{root}")
    library.look(source, scope(root))
    (root / "empty.txt").unlink()
    library.look(source, scope(root))
    assert library.ledger.sources.failures(source.source_id) == {}


names = st.sampled_from(["a", "b", "c", "d/e", "d/f"])
contents = st.sampled_from([b"one", b"two", b"three"])
states = st.lists(st.dictionaries(names, contents), min_size=1, max_size=4)


@pytest.mark.long
@settings(max_examples=15, deadline=None)
@given(states=states)
def test_after_each_run_the_documents_are_what_the_source_holds(
    states: list[dict[str, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """But for a new copy of what another document holds already."""
    library = make_library(tmp_path_factory.mktemp("library"))
    bucket = f"memory://{uuid.uuid4().hex}"
    files = fsspec.filesystem("memory")
    files.mkdir(bucket)
    source = library.add(bucket, delete_missing=True)
    with closing(library.ledger):
        for state in states:
            for path in list(files.find(bucket)):
                files.rm(path)
            for name, content in state.items():
                files.pipe(f"{bucket}/{name}", content)
            opened = Folder(bucket, most_mb=1, timeout_seconds=10)
            library.look(source, opened, force=True)
            library.look(source, opened, force=True)  # a copy may have become the only one
            held = {name: library.document(name).newest.sha256 for name in library.names()}
            there = {f"src/{name}": sha256(content).hexdigest() for name, content in state.items()}
            assert held.items() <= there.items()
            assert set(held.values()) == set(there.values())
            assert not library.again(source).counts.get("failed")


def test_the_documents_of_a_source_have_its_readers(library: Library, root: Path) -> None:
    source = library.add(f"file://{root}", readers=("group:hr",))
    library.look(source, scope(root))
    document = library.document("src/a.txt")
    assert document.readers == ("group:hr",)
    library.ledger.readers.set(document.document_id, ("user:ann",))
    plain = library.add(f"file://{root}", name="plain")
    assert plain.readers is None
