"""Runs over a folder in which files are renamed, or have names that are stored alike."""

import os
import unicodedata
from hashlib import sha256
from pathlib import Path

import pytest
from source_parts import Library, scope

from callslip.ingestion.sources import sync
from callslip.ingestion.sources.folder import Folder

pytest_plugins = ["source_fixtures"]


def test_a_renamed_file_moves_in_one_run(library: Library, root: Path) -> None:
    source = library.add(f"file://{root}", delete_missing=True)
    library.look(source, scope(root))
    (root / "a.txt").rename(root / "c.txt")
    assert library.look(source, scope(root)).counts == {"unchanged": 1, "deleted": 1, "new": 1}
    assert library.names() == {"src/c.txt", "src/deep/b.txt"}


def test_a_renamed_folder_moves_in_one_run_however_short_its_slices_are(
    library: Library, root: Path
) -> None:
    for number in range(5):
        (root / "deep" / f"{number}.txt").write_text(f"number {number}")
    source = library.add(f"file://{root}", delete_missing=True)
    library.look(source, scope(root))
    (root / "deep").rename(root / "new")
    library.ledger.sources.ask(source.source_id)
    slices = 0
    while crawl := library.crawl(source, scope(root), slice_seconds=0):
        sync(crawl)
        slices += 1
    assert slices > 6
    assert library.again(source).counts == {"unchanged": 1, "deleted": 6, "new": 6}
    moved = {f"src/new/{number}.txt" for number in range(5)}
    assert library.names() == {"src/a.txt", "src/new/b.txt", *moved}


def test_names_that_are_kept_alike_do_not_become_versions_of_each_other(
    library: Library, root: Path
) -> None:
    (root / "x\ty.txt").write_text("with a tab")
    (root / "x y.txt").write_text("with a space")
    source = library.add(f"file://{root}")
    for _ in range(2):
        counts = library.look(source, scope(root)).counts
        assert counts["failed"] == 1
    assert library.document("src/x y.txt").newest.version == 1


def test_a_name_that_is_no_unicode_fails_alone(library: Library, root: Path) -> None:
    Path(os.fsdecode(os.fsencode(root) + b"/\xff.txt")).write_text("named in Latin-1")
    source = library.add(f"file://{root}")
    assert library.look(source, scope(root)).counts == {"new": 2, "failed": 1}


def test_a_name_that_is_refused_is_tried_again_without_reading_the_file(
    library: Library, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    winner, loser = root / "x\ty.txt", root / "x y.txt"
    winner.write_text("with a tab")
    loser.write_text("with a space")
    (root / " ").write_text("without a name")
    source = library.add(f"file://{root}", delete_missing=True)
    assert library.look(source, scope(root)).counts == {"new": 3, "failed": 2}
    failed = set(library.ledger.sources.failures(source.source_id))
    assert failed == {"x y.txt", " "}
    with monkeypatch.context() as patched:
        patched.setattr(Folder, "_open", lambda *_: pytest.fail("it was read again"))
        assert library.look(source, scope(root)).counts == {"unchanged": 3, "failed": 2}
    winner.unlink()
    assert library.look(source, scope(root)).counts == {"unchanged": 2, "changed": 1, "failed": 1}
    assert library.removed == []
    document = library.document("src/x y.txt")
    assert document.newest.sha256 == sha256(b"with a space").hexdigest()


def test_a_later_file_with_the_document_name_of_another_does_not_replace_it_unseen(
    library: Library, root: Path
) -> None:
    """The first one in the listing has the document, and the other one fails."""
    source = library.add(f"file://{root}", delete_missing=True)
    (root / "x y.txt").write_text("with a space")
    library.look(source, scope(root))
    (root / "x\ty.txt").write_text("with a tab")
    assert library.look(source, scope(root)).counts == {"unchanged": 2, "changed": 1, "failed": 1}
    assert list(library.ledger.sources.failures(source.source_id)) == ["x y.txt"]
    assert library.look(source, scope(root)).counts == {"unchanged": 3, "failed": 1}
    (root / "x\ty.txt").unlink()
    assert library.look(source, scope(root)).counts == {"unchanged": 2, "changed": 1}
    document = library.document("src/x y.txt")
    assert document.newest.sha256 == sha256(b"with a space").hexdigest()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (unicodedata.normalize("NFD", "résumé.txt"), unicodedata.normalize("NFC", "résumé.txt")),
        ("x\ty.txt", "x y.txt"),
        ("x.txt ", "x.txt"),
    ],
)
@pytest.mark.parametrize("delete_missing", [True, False])
def test_a_document_stays_when_its_file_gets_a_name_that_is_stored_alike(
    library: Library, root: Path, before: str, after: str, delete_missing: bool
) -> None:
    (root / before).write_text("gamma")
    source = library.add(f"file://{root}", delete_missing=delete_missing)
    library.look(source, scope(root))
    (root / before).rename(root / after)
    assert library.look(source, scope(root)).counts == {"changed": 1, "unchanged": 2}
    assert library.look(source, scope(root)).counts == {"unchanged": 3}
    assert f"src/{after}" in library.names()
    assert library.removed == []
    document_id = library.document(f"src/{after}").document_id
    (root / after).unlink()
    library.look(source, scope(root), delete_missing=True)
    assert library.removed == [document_id]
