"""Blobs: whole files by name, in a folder and in a store that is none."""

import io
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from callslip.errors import StoreDown
from callslip.stores.blobs import COPY_BYTES, Blobs


@pytest.fixture(params=["folder", "memory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    """A blob store of each kind in turn."""
    if request.param == "folder":
        return Blobs(str(tmp_path / "blobs"))
    return Blobs(f"memory://{uuid.uuid4().hex}")


def test_what_was_written_is_read_back(blobs: Blobs) -> None:
    blobs.write("d1", "a", b"one")
    blobs.write("d1", "b", io.BytesIO(b"x" * (COPY_BYTES + 1)))
    assert blobs.read("d1", "a") == b"one"
    assert len(blobs.read("d1", "b")) == COPY_BYTES + 1
    assert blobs.exists("d1", "a")
    assert blobs.count("d1") == 2


def test_documents_and_their_files_are_listed(blobs: Blobs) -> None:
    assert (blobs.document_ids(), blobs.names("a" * 32)) == (set(), set())
    for document_id, name in (("a" * 32, "x"), ("a" * 32, "y"), ("b" * 32, "x"), ("probe-1", "x")):
        blobs.write(document_id, name, b"one")
    assert blobs.document_ids() == {"a" * 32, "b" * 32}, "what is no id is nobody's"
    assert blobs.names("a" * 32) == {"x", "y"}


def test_the_same_name_again_replaces(blobs: Blobs) -> None:
    blobs.write("d1", "a", b"one")
    blobs.write("d1", "a", b"")
    assert blobs.read("d1", "a") == b""
    assert blobs.count("d1") == 1


def test_what_is_not_there_is_said_so(blobs: Blobs) -> None:
    assert not blobs.exists("d1", "a")
    assert blobs.count("d1") == 0
    with pytest.raises(FileNotFoundError):
        blobs.read("d1", "a")


def test_a_deleted_document_leaves_nothing_and_others_stay(blobs: Blobs) -> None:
    blobs.write("d1", "a", b"one")
    blobs.write("d10", "a", b"ten")
    blobs.delete("d1")
    blobs.delete("d1")
    assert (blobs.count("d1"), blobs.count("d10")) == (0, 1)
    assert not blobs.exists("d1", "a")


@pytest.mark.parametrize("bad", ["", ".", "..", "../d", "a/b", "a\\b", "a\n", "é", "a\0"])
def test_no_name_gets_out_of_its_folder(blobs: Blobs, bad: str) -> None:
    for call in (
        lambda: blobs.write(bad, "a", b""),
        lambda: blobs.write("d", bad, b""),
        lambda: blobs.read("d", bad),
        lambda: blobs.delete(bad),
        lambda: blobs.count(bad),
    ):
        with pytest.raises(ValueError, match="not a"):
            call()


def test_a_stream_that_breaks_off_leaves_no_file(blobs: Blobs) -> None:
    class Breaks(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell():
                raise OSError("the connection broke")
            return super().read(3)

    with pytest.raises(StoreDown, match="cannot write"):
        blobs.write("d1", "a", Breaks(b"abcdef"))
    assert not blobs.exists("d1", "a")
    assert blobs.count("d1") == 0


def test_many_may_check_and_write_at_once(blobs: Blobs) -> None:
    start = threading.Barrier(8)

    def busy(n: int) -> None:
        start.wait()
        for _ in range(5):
            blobs.check()
            blobs.write("d1", "same", b"same")
            blobs.write("d1", str(n), b"own")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(busy, range(8)))
    assert blobs.count("d1") == 9


def test_a_folder_that_cannot_be_written_is_a_store_that_is_down(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"in the way")
    blobs = Blobs(str(tmp_path / "file"))
    with pytest.raises(StoreDown):
        blobs.check()
