"""After a deletion and a compaction no file of a store has anything of what was deleted."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from chroma_server import chroma_server, chroma_settings

from callslip.config.settings import Settings
from callslip.stores.chroma.server_files import compact_server
from callslip.stores.chroma.table import Table
from callslip.stores.contract import Store
from callslip.stores.records import ChunkRecord, CollectionSchema, DocumentRecord, VectorSpec
from callslip.stores.registry import make_store

COLLECTION = "papers"
MARKER = "xyzzymarker"


@pytest.fixture(params=["tfidf", "chroma"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store whose files are in the folder of the test."""
    if request.param == "tfidf":
        with closing(make_store(Settings(data_dir=tmp_path), "tfidf")) as made:
            yield made
        return
    with (
        chroma_server(tmp_path) as (url, _),
        closing(make_store(chroma_settings(url, tmp_path), "chroma")) as made,
    ):
        yield made


def chunk(n: int, word: str, vector: float) -> ChunkRecord:
    return ChunkRecord(
        chunk_id=f"{word}-{n}",
        document_id=word,
        body=f"{word} body {n}",
        terms=f"{word} body",
        vector=np.array([1.0, vector, n / 1000, 0.5], np.float32),
        heading=word,
        title=word,
        filename=f"{word}.txt",
        properties={"about": word},
    )


def test_nothing_of_deleted_chunks_is_in_a_file(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.ensure_schema(CollectionSchema(COLLECTION, VectorSpec(4)))
    marked = np.float32(0.123456789)
    for word, vector in (("others", 0.75), (MARKER, float(marked))):
        record = DocumentRecord(word, word, f"{word}.txt", {"about": word})
        store.batch_upsert_documents(COLLECTION, [record])
        store.batch_upsert_chunks(COLLECTION, [chunk(n, word, vector) for n in range(150)])
    before = store.keyword_query(COLLECTION, "others", 5)
    assert traces(tmp_path, marked)
    store.delete_documents(COLLECTION, [MARKER])
    if store.kind == "chroma":
        _kill_between_renames(store, monkeypatch)
    store.compact(COLLECTION)
    compact_server(tmp_path / "chroma")
    assert traces(tmp_path, marked) == []
    assert store.count(COLLECTION) == 150
    assert len(store.keyword_query(COLLECTION, "others", 200)) == 150
    assert [hit.chunk_id for hit in store.keyword_query(COLLECTION, "others", 5)] == [
        hit.chunk_id for hit in before
    ]
    (found,) = store.get_chunks(COLLECTION, ["others-7"], include_vector=True, include_terms=True)
    assert found.body == "others body 7"
    assert found.terms == "others body"
    assert found.properties["about"] == "others"
    hits = store.vector_query(COLLECTION, chunk(7, "others", 0.75).vector, 1)
    assert [hit.chunk_id for hit in hits] == ["others-7"]
    store.compact(COLLECTION)
    store.batch_upsert_chunks(COLLECTION, [chunk(151, "others", 0.75)])
    assert store.count(COLLECTION) == 151


def _kill_between_renames(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compact until the old table has another name and the new one not yet its own."""
    rename, calls = Table._rename, 0

    def once(self: Table, name: str, to: str) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise KeyboardInterrupt
        rename(self, name, to)

    with monkeypatch.context() as patch:
        patch.setattr(Table, "_rename", once)
        with pytest.raises(KeyboardInterrupt):
            store.compact(COLLECTION)


def traces(folder: Path, vector: np.float32) -> list[str]:
    """The files with the deleted text or a number of its vectors."""
    needles = (MARKER.encode(), vector.tobytes())
    return [
        f"{path.relative_to(folder)}: {needle!r}"
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "log"
        for needle in needles
        if needle in path.read_bytes()
    ]
