"""The form of backups: encryption, objects, checksums, retention."""

import hashlib
import os
import socket
import zlib
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip.errors import BackupError, CallslipError, StoreDown
from callslip.stores.backup.destination import LARGEST, Destination
from callslip.stores.backup.encryption import FRAME_BYTES, Cipher
from callslip.stores.backup.manifest import retained, time_prefix
from callslip.stores.backup.parts import NameSet, Writer, rows

KEY = "correct horse battery"
CIPHER = Cipher(KEY, b"s" * 16)


def sealed(content: bytes, name: str = "n") -> bytes:
    return b"".join(CIPHER.encrypt(name, [content]))


def opened(content: bytes, name: str = "n") -> bytes:
    return b"".join(CIPHER.decrypt(name, [content]))


@pytest.mark.parametrize("size", [0, 1, FRAME_BYTES - 1, FRAME_BYTES, FRAME_BYTES + 1, 3 << 20])
def test_what_was_encrypted_is_decrypted(size: int) -> None:
    content = os.urandom(size)
    assert opened(sealed(content)) == content


@given(content=st.binary(max_size=100), cut=st.integers(0, 200))
@settings(max_examples=50)
def test_a_shorter_or_changed_object_is_damaged(content: bytes, cut: int) -> None:
    whole = sealed(content)
    with pytest.raises(BackupError):
        opened(whole[: cut % len(whole)])
    at = cut % len(whole)
    with pytest.raises(BackupError):
        opened(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])


def test_frames_cannot_be_left_out_and_objects_not_exchanged() -> None:
    whole = sealed(b"x" * (FRAME_BYTES + 1))
    with pytest.raises(BackupError):
        opened(whole[: 16 + FRAME_BYTES + 16])
    with pytest.raises(BackupError):
        opened(whole, name="another")


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("where", ["folder", "memory"])
def test_objects_and_values_are_read_back(tmp_path: Path, where: str, key: str | None) -> None:
    url = str(tmp_path / "to") if where == "folder" else f"memory://{tmp_path.name}-{key}"
    content = b"marker" * 500_000
    sha256 = hashlib.sha256(content).hexdigest()
    to = Destination(url, key, make=True)
    to.put(sha256, [content])
    to.write("manifests", "m", {"a": "marker"})
    again = Destination(url, key)
    assert b"".join(again.read(sha256)) == content
    assert again.load("manifests", "m") == {"a": "marker"}
    assert list(again.objects()) == [again.name(sha256)]
    assert (again.name(sha256) == sha256) == (key is None)
    if where == "folder" and key:
        files = [path for path in (tmp_path / "to").rglob("*") if path.is_file()]
        assert not any(b"marker" in path.read_bytes() for path in files)


def test_a_wrong_missing_or_needless_passphrase_is_refused(tmp_path: Path) -> None:
    Destination(str(tmp_path / "secret"), KEY, make=True)
    Destination(str(tmp_path / "plain"), make=True)
    for name, key in (("secret", "another passphrase"), ("secret", None), ("plain", KEY)):
        with pytest.raises(BackupError):
            Destination(str(tmp_path / name), key)
    with pytest.raises(BackupError, match="no backups"):
        Destination(str(tmp_path / "nothing"))


@pytest.mark.parametrize("make", [False, True])
@pytest.mark.parametrize("below", ["", "sub", "sub/sub"])
def test_a_file_is_no_destination(tmp_path: Path, below: str, *, make: bool) -> None:
    (tmp_path / "a.bin").write_bytes(b"x")
    with pytest.raises(BackupError) as raised:
        Destination(str(tmp_path / "a.bin" / below), make=make)
    assert raised.value.detail == f"{tmp_path / 'a.bin'} is a file; name a folder"


def test_a_folder_that_cannot_be_made_is_an_error() -> None:
    with pytest.raises(BackupError, match="/proc/x cannot be made: No such file or directory"):
        Destination("/proc/x", make=True)


def test_a_device_is_no_destination() -> None:
    with pytest.raises(BackupError, match="/dev/null is no folder; name a folder"):
        Destination("/dev/null", make=True)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (socket.gaierror(-2, "Name or service not known"), StoreDown, "Name or service not known"),
        (RuntimeError("Unable to locate credentials"), BackupError, "Unable to locate credentials"),
        (NotImplementedError(), BackupError, "NotImplementedError"),
    ],
)
def test_a_destination_that_cannot_be_opened_is_an_error_with_a_hint(
    monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[CallslipError], words: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(fsspec.core, "url_to_fs", fail)
    with pytest.raises(kind, match=rf"^memory://x cannot be (opened|reached): {words}\n") as raised:
        Destination("memory://x", make=True)
    assert "Check its address" in raised.value.advice


def test_a_damaged_object_is_noticed(tmp_path: Path) -> None:
    to = Destination(str(tmp_path), make=True)
    sha256 = hashlib.sha256(b"one").hexdigest()
    to.put(sha256, [b"one"])
    path = tmp_path / "objects" / sha256[:2] / sha256
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(BackupError, match="damaged"):
        list(to.read(sha256))
    path.unlink()
    with pytest.raises(BackupError, match="missing"):
        list(to.read(sha256))


@pytest.mark.parametrize(
    "head",
    [
        b"[]",
        b"[" * 60_000,
        b"\xff",
        b'{"magic": "callslip backup", "format": 1}',
        b'{"magic": "callslip backup", "format": 1, "salt": 7}',
        b'{"magic": "callslip backup", "format": 1, "salt": "00"}',
        b'{"magic": "callslip backup", "format": 1, "salt": "%s"}' % (b"0" * 32),
    ],
)
def test_a_head_that_is_none_is_refused(tmp_path: Path, head: bytes) -> None:
    (tmp_path / "backup.json").write_bytes(head)
    with pytest.raises(BackupError):
        Destination(str(tmp_path), KEY)


def test_an_object_expands_to_its_size_alone_and_its_name_is_no_path(tmp_path: Path) -> None:
    to = Destination(str(tmp_path / "to"), make=True)
    block, bomb = bytes(1 << 20), tmp_path / "bomb"
    compressor = zlib.compressobj(1)
    with bomb.open("wb") as file:
        for _ in range(LARGEST // len(block) + 1):
            file.write(compressor.compress(block))
        file.write(compressor.flush())
    sha256 = "0" * 64
    for path in (f"objects/00/{sha256}", "manifests/m"):
        (tmp_path / "to" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "to" / path).write_bytes(bomb.read_bytes())
    with pytest.raises(BackupError, match="larger than 1000 bytes"):
        list(to.read(sha256, 1000))
    with pytest.raises(BackupError, match=f"larger than {LARGEST} bytes"):
        to.load("manifests", "m")
    (tmp_path / "outside").write_bytes(zlib.compress(b"secret"))
    for name in ("../../../outside", f"{sha256[:-2]}/.", "", 7, None):
        with pytest.raises(BackupError, match="no SHA-256"):
            list(to.read(name))  # type: ignore[arg-type]


def test_a_file_that_changes_while_it_is_copied_leaves_no_object(tmp_path: Path) -> None:
    to = Destination(str(tmp_path), make=True)
    with pytest.raises(BackupError, match="changed"):
        to.put(hashlib.sha256(b"one").hexdigest(), [b"two"])
    assert list(to.objects()) == []
    assert not list(tmp_path.rglob("*.partial"))


def test_an_insertion_changes_one_object(tmp_path: Path) -> None:
    to = Destination(str(tmp_path), make=True)
    with NameSet() as present:

        def written(values: list[int]) -> list[str]:
            writer = Writer(to, present, ["n"])
            for value in values:
                writer.add([f"row {value}"])
            part = writer.part()
            assert [row for (row,) in rows(to, part)] == [f"row {value}" for value in values]
            return part.objects

        before = written(list(range(20_000)))
        after = written([*range(10_000), 99_999, *range(10_000, 20_000)])
    assert len(before) > 5
    assert len(set(after) - set(before)) <= 2


def test_the_newest_of_days_and_weeks_stay() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    names = [time_prefix((begin + timedelta(hours=12 * n)).timestamp()) + "-x" for n in range(120)]
    kept = sorted(retained(names, 3))
    assert names[-1] in kept
    days = {name[:8] for name in kept}
    assert {"20260227", "20260228", "20260301"} <= days
    assert len(kept) == 5, "three days, and the ends of two more weeks"
    assert all(one != other for one, other in pairwise(kept))
    assert retained(names, 0) == set(names)


def test_files_are_their_owners_alone_in_a_folder_that_was_there(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    made = Destination(str(tmp_path), make=True)
    content = b"a text"
    made.put(hashlib.sha256(content).hexdigest(), [content])
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert len(files) == 2
