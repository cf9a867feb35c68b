"""Blobs: whole files by name, in a folder, in a bucket of S3 and in a store that is neither."""

import io
import logging
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from callslip.errors import SettingsError, StoreDown
from callslip.stores.blobs import COPY_BYTES, BlobMissing, Blobs

KEYS = {
    "AWS_ACCESS_KEY_ID": "any",
    "AWS_SECRET_ACCESS_KEY": "any",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_MAX_ATTEMPTS": "1",
}


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of a server that speaks S3."""
    logging.getLogger("werkzeug").disabled = True
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        server.start()
        yield "http://{}:{}".format(*server.get_host_and_port())
        server.stop()
    logging.getLogger("werkzeug").disabled = False


def bucket(endpoint: str) -> str:
    """The URL of a new bucket."""
    url = f"s3://b-{uuid.uuid4().hex}"
    Blobs(url, endpoint)._fs.mkdir(url)
    return f"{url}/prefix"


@pytest.fixture(params=["folder", "memory", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    """A blob store of each kind in turn."""
    if request.param == "folder":
        return Blobs(str(tmp_path / "blobs"))
    if request.param == "s3":
        endpoint = request.getfixturevalue("s3")
        return Blobs(bucket(endpoint), endpoint)
    return Blobs(f"memory://{uuid.uuid4().hex}")


def test_a_blob_store_is_empty_until_a_document_has_a_file(blobs: Blobs) -> None:
    assert blobs.is_empty()
    blobs.check()
    assert blobs.is_empty()
    blobs.write("d" * 32, "a", b"one")
    assert not blobs.is_empty()
    with pytest.raises(BlobMissing):
        blobs.read("d" * 32, "b")
    with pytest.raises(BlobMissing), blobs.reading("d" * 32, "b"):
        pass


def test_what_was_written_is_read_back(blobs: Blobs) -> None:
    blobs.write("d1", "a", b"one")
    blobs.write("d1", "b", io.BytesIO(b"x" * (COPY_BYTES + 1)))
    assert blobs.read("d1", "a") == b"one"
    assert len(blobs.read("d1", "b")) == COPY_BYTES + 1
    assert blobs.exists("d1", "a")
    assert blobs.count("d1") == 2


def test_several_files_are_written_at_once_and_each_may_fail(blobs: Blobs) -> None:
    contents = {("d1", f"n{n}"): b"%d" % n for n in range(20)}
    errors = blobs.write_all(contents | {("d1", "../n"): b""})
    assert errors.keys() == {("d1", "../n")}
    assert blobs.names("d1") == {name for _, name in contents}
    assert blobs.read("d1", "n7") == b"7"
    assert blobs.write_all({("d1", "n7"): b"seven"}) == {}


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


@pytest.mark.parametrize("blobs", ["folder", "memory"], indirect=True)
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


def test_what_another_process_wrote_or_removed_is_seen_at_once(s3: str) -> None:
    url = bucket(s3)
    one, other = Blobs(url, s3), Blobs(url, s3)
    other._fs = type(one._fs)(endpoint_url=s3, use_listings_cache=False, skip_instance_cache=True)
    assert one.names("d1") == set()
    other.write("d1", "a", b"one")
    assert one.exists("d1", "a")
    assert one.names("d1") == {"a"}
    other.delete("d1")
    assert one.count("d1") == 0


def test_a_bucket_that_does_not_answer_or_is_missing_is_a_store_that_is_down(s3: str) -> None:
    with pytest.raises(StoreDown, match=r"cannot write: EndpointConnectionError\n"):
        Blobs("s3://bucket", "http://127.0.0.1:9").check()
    with pytest.raises(StoreDown, match="cannot write: FileNotFoundError: The specified bucket"):
        Blobs("s3://missing", s3).check()
    with pytest.raises(SettingsError, match=r"blobs.url: x3:// cannot be opened"):
        Blobs("x3://bucket")


@pytest.mark.parametrize("blobs", ["folder", "memory"], indirect=True)
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
