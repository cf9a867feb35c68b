"""Archives that were made to do harm: each is named as one, and nothing of it stays."""

import hashlib
import io
import json
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from moving import COLLECTION, Site, fill, silent

from callslip.errors import ArchiveError, Conflict, MoveError
from callslip.stores.blobs import original_name
from callslip.stores.transfer import Report, archive_format, export_collection, import_archive

ROW = np.ones((1, 8), np.float32)
Edit = Callable[["Parts"], object]


class Parts:
    """An archive taken apart: files by document, and what stands around them."""

    def __init__(self, path: Path) -> None:
        with tarfile.open(path) as tar:
            found = {m.name: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]
        self.head = json.loads(found.pop("collection.json"))
        self.end = json.loads(found.pop("end.json"))
        self.files: dict[str, dict[str, bytes]] = {}
        for name, data in found.items():
            _, document_id, file = name.split("/", 2)
            self.files.setdefault(document_id, {})[file] = data
        self.cards = {i: json.loads(f.pop("document.json")) for i, f in self.files.items()}
        self.order = list(self.files)

    def card(self, n: int = 0) -> Any:
        """What document.json of the n-th document says."""
        return self.cards[self.order[n]]

    def of(self, n: int = 0) -> dict[str, bytes]:
        """The other files of the n-th document."""
        return self.files[self.order[n]]

    def line(self, change: Callable[[Any], object], n: int = 0) -> None:
        """Change a document's first chunk."""
        first, *more = self.of(n)["chunks.jsonl"].splitlines(keepends=True)
        output = json.loads(first)
        change(output)
        self.of(n)["chunks.jsonl"] = b"".join([json.dumps(output).encode() + b"\n", *more])

    def write(self, path: Path) -> Path:
        """Put it together again, with every size and checksum right."""
        with tarfile.open(path, "w") as tar:
            _add(tar, "collection.json", json.dumps(self.head).encode())
            for i in self.order:
                card = self.cards[i]
                for name, data in self.files[i].items():
                    _add(tar, f"documents/{i}/{name}", data)
                card["files"] = {
                    name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
                    for name, data in self.files[i].items()
                }
                _add(tar, f"documents/{i}/document.json", json.dumps(card).encode())
            _add(tar, "end.json", json.dumps(self.end).encode())
        return path


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Site]:
    """Where the archive is to be imported."""
    (tmp_path / "there").mkdir()
    site = Site(tmp_path / "there")
    yield site
    site.ledger.close()


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "tenants"])
def any_archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound archive, without tenants and with them."""
    return _exported(tmp_path_factory.mktemp("here"), tenants=request.param)


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound archive."""
    return _exported(tmp_path_factory.mktemp("here"), tenants=False)


def _exported(folder: Path, *, tenants: bool) -> Path:
    site = Site(folder)
    fill(site, tenants=tenants)
    export_collection(site.backend, COLLECTION, folder / "papers.tar", silent)
    site.ledger.close()
    return folder / "papers.tar"


def take(site: Site, path: Path) -> Report:
    """Import."""
    return import_archive(site.backend, path, name=None, to=None, default="other", progress=silent)


def refused(site: Site, path: Path) -> ArchiveError:
    """The error of an import that leaves nothing behind."""
    with pytest.raises(ArchiveError) as raised:
        take(site, path)
    assert site.ledger.collections.all() == []
    assert site.stores["other"].collections() == []
    assert not (site.folder / "blobs").exists()
    return raised.value


def test_an_archive_that_was_only_put_together_anew_arrives(
    there: Site, any_archive: Path, tmp_path: Path
) -> None:
    assert take(there, Parts(any_archive).write(tmp_path / "b.tar")).probes["vector"]


# Documents against each other, and against the end


def one_name(parts: Parts) -> None:
    """Two documents of one tenant have one name."""
    first = parts.card(0)["transcript"]
    other = next(
        card["transcript"]
        for i, card in parts.cards.items()
        if i != parts.order[0] and card["transcript"]["tenant"] == first["tenant"]
    )
    other["name"] = first["name"]


def one_chunk(parts: Parts) -> None:
    """Two documents have one chunk."""
    first, other = [n for n in range(len(parts.order)) if parts.card(n)["transcript"]["chunks"]][:2]
    taken = next(iter(parts.card(first)["transcript"]["chunks"]))
    chunks = parts.card(other)["transcript"]["chunks"]
    lines = [json.loads(line) for line in parts.of(other)["chunks.jsonl"].splitlines()]
    chunks[taken] = chunks.pop(lines[-1]["chunk_id"])
    lines[-1]["chunk_id"] = taken
    parts.of(other)["chunks.jsonl"] = b"".join(json.dumps(x).encode() + b"\n" for x in lines)


def twice(parts: Parts) -> None:
    """A document is there twice, and counted twice."""
    transcript = parts.card()["transcript"]
    parts.order.append(parts.order[0])
    counts = parts.end["tenants"][transcript["tenant"]]
    counts["documents"] += 1
    counts["chunks"] += len(transcript["chunks"])


@pytest.mark.parametrize("edit", [one_name, one_chunk, twice])
def test_documents_that_cannot_both_arrive_are_refused(
    there: Site, any_archive: Path, tmp_path: Path, edit: Edit
) -> None:
    parts = Parts(any_archive)
    edit(parts)
    assert "document" in refused(there, parts.write(tmp_path / "b.tar")).detail


def test_tenants_may_have_documents_of_the_same_name(there: Site, tmp_path: Path) -> None:
    path = _exported(tmp_path, tenants=True)
    names = [card["transcript"]["name"] for card in Parts(path).cards.values()]
    assert len(set(names)) < len(names)
    assert take(there, path).documents == len(names)


def probe(tenant: str) -> Any:
    """A probe of a tenant, and what it found."""
    return {"probe": {"tenant": tenant, "chunk_id": "x", "terms": "y"}, "answers": {}}


ENDS: dict[str, Callable[[Any], object]] = {
    "a tenant that is too long": lambda end: end["tenants"].update({"x" * 129: dict(NONE)}),
    "a tenant with a NUL": lambda end: end["tenants"].update({"\0": dict(NONE)}),
    "a property with a NUL": lambda end: end["property_names"].append("\0"),
    "very many names": lambda end: end["property_names"].extend(f"p{n}" for n in range(50_000)),
    "a probe of a stranger": lambda end: end["probes"].append(probe("ghost")),
    "very many probes": lambda end: end.update(probes=end["probes"][:1] * 1000),
    "a probe with very many answers": lambda end: end["probes"][0]["answers"].update(
        vector=["x"] * 1000
    ),
}
NONE = {"documents": 0, "chunks": 0}


@pytest.mark.parametrize("change", ENDS)
def test_an_end_that_does_not_go_with_the_collection_is_refused(
    there: Site, any_archive: Path, tmp_path: Path, change: str
) -> None:
    parts = Parts(any_archive)
    ENDS[change](parts.end)
    refused(there, parts.write(tmp_path / "b.tar"))


def test_a_tenant_of_a_collection_without_tenants_is_refused(
    there: Site, collection: Path, tmp_path: Path
) -> None:
    parts = Parts(collection)
    parts.end["tenants"]["ghost"] = dict(NONE)
    assert "tenants" in refused(there, parts.write(tmp_path / "b.tar")).detail


def test_a_probe_outside_of_all_tenants_is_refused(there: Site, tmp_path: Path) -> None:
    parts = Parts(_exported(tmp_path, tenants=True))
    parts.end["tenants"][""] = dict(NONE)
    parts.end["probes"] = [probe("")]
    assert "probe" in refused(there, parts.write(tmp_path / "b.tar")).detail


def test_an_empty_collection_with_tenants_but_without_one_moves(
    there: Site, tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    site = Site(tmp_path / "here")
    site.make(tenants=True)
    export_collection(site.backend, COLLECTION, tmp_path / "a.tar", silent)
    site.ledger.close()
    assert take(there, tmp_path / "a.tar").documents == 0


def test_where_a_name_is_taken_here_nothing_of_the_archive_arrives(
    there: Site, collection: Path
) -> None:
    there.make(store="other")
    own = there.publish("versions", "my own")
    with pytest.raises(Conflict, match="is here already"):
        take(there, collection)
    assert [i for i, _ in there.ledger.transcripts.ids(COLLECTION)] == [own.document_id]


HEADS: dict[str, Callable[[Any], object]] = {
    "a vector's name that gets out": lambda h: h["named"].update({"../../x": h["default"]}),
    "a vector's name that is too long": lambda h: h["named"].update({"x" * 65: h["default"]}),
    "an embedder that is too long": lambda h: h.update(embedder="x" * 257),
    "an analyzer that is too long": lambda h: h.update(analyzer="x" * 65),
}


@pytest.mark.parametrize("change", HEADS)
def test_a_head_that_no_ledger_or_store_keeps_is_refused(
    there: Site, collection: Path, tmp_path: Path, change: str
) -> None:
    parts = Parts(collection)
    HEADS[change](parts.head)
    refused(there, parts.write(tmp_path / "b.tar"))


MANY: dict[str, dict[str, Any]] = {
    "keys": {f"p{n}": n for n in range(20_000)},
    "a list": {"a": list(range(30_000))},
    "lists": {f"p{n}": list(range(256)) for n in range(64)},
    "empty lists": {f"p{n}": [] for n in range(20_000)},
}


@pytest.mark.long
@pytest.mark.parametrize("properties", MANY.values(), ids=MANY)
@pytest.mark.parametrize("position", ["chunk", "document", "version"])
def test_properties_that_no_store_can_take_are_refused(
    there: Site, collection: Path, tmp_path: Path, properties: dict[str, Any], position: str
) -> None:
    parts = Parts(collection)
    if position == "chunk":
        full = next(n for n in range(4) if parts.card(n)["transcript"]["chunks"])
        parts.line(lambda line: line.update(properties=properties), full)
    elif position == "document":
        parts.card()["properties"] = properties
    else:
        parts.card()["transcript"]["versions"][0]["properties"] = properties
    assert "at most 2048" in refused(there, parts.write(tmp_path / "b.tar")).detail


# Files


def artifact(name: str | None, step: int = 0) -> Edit:
    """Let a step name another artifact."""
    return lambda parts: parts.card()["transcript"]["steps"][step].update(artifact=name)


def original_of(parts: Parts) -> str:
    """The name of the first document's original."""
    return next(name for name in parts.of() if name.startswith("blobs/original-"))


BLOBS: dict[str, Edit] = {
    "none": lambda parts: [parts.of().pop(n) for n in list(parts.of()) if "blobs/" in n],
    "no original": lambda parts: parts.of().pop(original_of(parts)),
    "no text": lambda parts: parts.of().pop(next(n for n in parts.of() if "/extract-" in n)),
    "one that no step names": lambda parts: parts.of().update({"blobs/evil.sh": b"x"}),
    "one of another step": lambda parts: (
        parts.of().update({"blobs/chunk-1": b"x"}),
        artifact("chunk-1", 2)(parts),
    ),
    "an original of other content": lambda parts: parts.of().update({original_of(parts): b"x"}),
    "a text that is the original": lambda parts: (
        parts.of().pop(next(n for n in parts.of() if "/extract-" in n)),
        artifact(original_of(parts).removeprefix("blobs/"))(parts),
    ),
    "a text that gets out": artifact("../../../../etc/passwd"),
    "a text without a name": artifact(""),
    "a text that is missing": artifact("nothing-there"),
    "very many": lambda parts: parts.of().update({f"blobs/{n}": b"" for n in range(1000)}),
}


@pytest.mark.parametrize("change", BLOBS)
def test_other_files_than_an_original_and_its_text_are_refused(
    there: Site, collection: Path, tmp_path: Path, change: str
) -> None:
    parts = Parts(collection)
    BLOBS[change](parts)
    refused(there, parts.write(tmp_path / "b.tar"))


def test_a_document_without_a_text_of_its_own_arrives(
    there: Site, collection: Path, tmp_path: Path
) -> None:
    parts = Parts(collection)
    BLOBS["no text"](parts)
    artifact(None)(parts)
    assert take(there, parts.write(tmp_path / "b.tar")).documents == 4


def test_what_was_imported_can_be_exported_and_imported_again(
    there: Site, collection: Path, tmp_path: Path
) -> None:
    take(there, collection)
    export_collection(there.backend, COLLECTION, tmp_path / "again.tar", silent)
    (tmp_path / "third").mkdir()
    third = Site(tmp_path / "third")
    take(third, tmp_path / "again.tar")
    assert third.state() == there.state()
    third.ledger.close()


def test_an_original_that_was_damaged_here_is_named_before_it_is_in_an_archive(
    there: Site, tmp_path: Path
) -> None:
    there.make()
    item = there.publish("one", "alpha")
    live = there.ledger.transcripts.read(item.document_id)
    assert live
    there.blobs.write(item.document_id, original_name(live.transcript.live.sha256), b"other")
    with pytest.raises(MoveError, match=f"original of document {item.document_id}"):
        export_collection(there.backend, COLLECTION, tmp_path / "a.tar", silent)
    assert not (tmp_path / "a.tar").exists()


# Arrays


def npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    """An array as numpy writes it, but for what is wrong with it."""
    text = header.encode()
    text += b" " * ((64 - (10 + len(text) + 1) % 64) % 64) + b"\n"
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text + data


def npz(content: bytes, name: str = "vectors.npy") -> bytearray:
    """A file of one array."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as held:
        held.writestr(name, content)
    return bytearray(file.getvalue())


def marked(local: int, central: int, value: int) -> bytes:
    """Sound vectors, a byte of whose place in the zip file is another one."""
    file = npz(npy(SHAPE % "(1, 8)", ROW.tobytes()))
    file[local] = value
    file[file.rfind(b"PK\x01\x02") + central] = value
    return bytes(file)


def many_times(times: int) -> bytes:
    """Sound vectors that the zip file names again and again."""
    file = bytes(npz(npy(SHAPE % "(1, 8)", ROW.tobytes())))
    begin, end = file.find(b"PK\x01\x02"), file.rfind(b"PK\x05\x06")
    sites = file[begin:end] * times
    count = times.to_bytes(2, "little")
    size, offset = len(sites).to_bytes(4, "little"), begin.to_bytes(4, "little")
    return b"".join([file[:begin], sites, END_OF_ZIP, count, count, size, offset, b"\0\0"])


END_OF_ZIP = b"PK\x05\x06\0\0\0\0"
SHAPE = "{'descr': '<f4', 'fortran_order': False, 'shape': %s}"
ARRAYS: dict[str, bytes] = {
    "no magic": bytes(npz(b"hello")),
    "no magic and no ending": bytes(npz(b"hello", "vectors")),
    "a shape of 40 GB": bytes(npz(npy(SHAPE % "(1, 10000000000)"))),
    "a shape beyond numbers": bytes(npz(npy(SHAPE % f"(1, {2**80})"))),
    "a negative shape": bytes(npz(npy(SHAPE % "(-1, 8)"))),
    "half a row": bytes(npz(npy(SHAPE % "(1.5, 8)"))),
    "a deep header": bytes(npz(npy(SHAPE % ("(" * 3000 + ")" * 3000)))),
    "a header that breaks off": bytes(npz(npy("{'descr': '<f4', 'shape': (1L,"))),
    "objects": bytes(npz(npy(SHAPE.replace("<f4", "|O") % "(1, 8)", b"cos\nsystem\n"))),
    "huge texts": bytes(npz(npy(SHAPE.replace("<f4", "<S2000000000") % "(1,)"))),
    "a later version": bytes(npz(npy(SHAPE % "(1, 8)", ROW.tobytes(), b"\x09\x00"))),
    "an encrypted file": marked(6, 8, 1),
    "a patch": marked(6, 8, 0x20),
    "a later version of zip": marked(4, 6, 99),
    "one array many times": many_times(1000),
    "nothing": b"",
}


@pytest.mark.parametrize("vectors", ARRAYS.values(), ids=ARRAYS)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_vectors_that_cannot_be_read_are_named(
    there: Site, collection: Path, tmp_path: Path, vectors: bytes
) -> None:
    parts = Parts(collection)
    for n in range(4):
        parts.of(n)["vectors.npz"] = vectors
    assert "chunks cannot be read" in refused(there, parts.write(tmp_path / "b.tar")).detail


# Headers and sizes


def header(kind: bytes, data: bytes, size: int | None = None) -> bytes:
    """A header of tar that says something of the next member."""
    member = tarfile.TarInfo("x")
    member.type, member.size = kind, len(data) if size is None else size
    block = member.tobuf(tarfile.GNU_FORMAT)
    return block + data + b"\0" * (-len(data) % tarfile.BLOCKSIZE)


PAX = b"10 a=bcde\n"
HEADERS = {
    "a chain": header(tarfile.XHDTYPE, PAX) * 5000,
    "a chain of long names": header(tarfile.GNUTYPE_LONGNAME, b"x\0") * 5000,
    "a chain of global ones": header(tarfile.XGLTYPE, PAX) * 5000,
    "a global one": header(tarfile.XGLTYPE, PAX),
    "a long link": header(tarfile.GNUTYPE_LONGLINK, b"/etc/passwd\0"),
    "a sparse file": header(tarfile.XHDTYPE, b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"),
    "a negative size": header(tarfile.XHDTYPE, b"", -512),
    "a size of no number": header(tarfile.XHDTYPE, b"12 size=abc\n"),
    "a size that goes back": header(tarfile.XHDTYPE, b"14 size=-5000\n"),
    "a size beyond numbers": header(tarfile.XHDTYPE, b"39 size=" + b"9" * 30 + b"\n"),
    "a character set": header(tarfile.XHDTYPE, b"19 hdrcharset=evil\n"),
}


@pytest.mark.long
@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("block", HEADERS.values(), ids=HEADERS)
def test_headers_that_an_archive_does_not_need_are_refused_or_mean_nothing(
    there: Site, collection: Path, tmp_path: Path, block: bytes, position: int
) -> None:
    content = collection.read_bytes()
    with tarfile.open(collection) as tar:
        offset = tar.getmembers()[position].offset
    path = tmp_path / "b.tar"
    path.write_bytes(content[:offset] + block + content[offset:])
    try:
        assert take(there, path).documents == 4
    except ArchiveError:
        assert there.ledger.collections.all() == []


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE])
@pytest.mark.parametrize("position", [0, 1])
def test_a_large_header_takes_no_memory(
    there: Site, collection: Path, tmp_path: Path, kind: bytes, position: int
) -> None:
    content, size = collection.read_bytes(), 1 << 30
    with tarfile.open(collection) as tar:
        offset = tar.getmembers()[position].offset
    with (tmp_path / "b.tar").open("wb") as file:
        file.write(content[:offset] + header(kind, b"", size))
        file.seek(size, io.SEEK_CUR)  # a hole: it takes no room on the disk
        file.write(content[offset:])
    assert _peak(there, tmp_path / "b.tar") < 10_000_000


@pytest.mark.parametrize(
    "name", ["collection.json", "documents/{}/document.json", "documents/{}/chunks.jsonl"]
)
def test_a_large_member_that_is_read_whole_takes_no_memory(
    there: Site, collection: Path, tmp_path: Path, name: str
) -> None:
    member = tarfile.TarInfo(name.format("a" * 32))
    member.size = 1 << 30
    with tarfile.open(collection) as tar:
        offset = 0 if name == "collection.json" else tar.getmembers()[1].offset
    with (tmp_path / "b.tar").open("wb") as file:
        file.write(collection.read_bytes()[:offset] + member.tobuf(tarfile.USTAR_FORMAT))
        file.seek(member.size, io.SEEK_CUR)
        file.write(bytes(10240))
    assert _peak(there, tmp_path / "b.tar") < 10_000_000


def _peak(site: Site, path: Path) -> int:
    tracemalloc.start()
    try:
        refused(site, path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_what_could_not_be_read_again_is_not_written(
    there: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.make()
    there.publish("one", "alpha beta gamma")
    monkeypatch.setitem(archive_format.LARGEST, "chunks.jsonl", 500)
    with pytest.raises(MoveError, match="at most 500 can be read again"):
        export_collection(there.backend, COLLECTION, tmp_path / "a.tar", silent)
    assert not (tmp_path / "a.tar").exists()


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://a b", "//x", "https://u:p@x/"])
def test_an_address_that_no_submission_could_have_is_refused(
    there: Site, any_archive: Path, tmp_path: Path, url: str
) -> None:
    parts = Parts(any_archive)
    for version in parts.card()["transcript"]["versions"]:
        version["url"] = url
    refused(there, parts.write(tmp_path / "b.tar"))
