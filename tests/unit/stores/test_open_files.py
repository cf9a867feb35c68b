"""How many files the stores of one machine keep open, and for how long."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from store_cases import EAST, chunk, ids

from callslip.errors import CollectionNotFound
from callslip.stores.fulltext.contract import Entry
from callslip.stores.fulltext.index import KeywordFolder, KeywordIndex
from callslip.stores.fulltext.stored_terms import StoredTerms
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.stores.tfidf import partition
from callslip.stores.tfidf.store import TfidfStore

THREADS, READERS, MOST = 4, 2, 3
NAMES = [f"c{number}" for number in range(12)]

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="reads /proc")


def descriptors(root: Path) -> list[str]:
    """The files under a folder, once for each file descriptor of this process."""
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return [path for path in map(os.readlink, links) if path.startswith(str(root))]


def opened(root: Path) -> set[str]:
    """The files under a folder that this process has open or maps into its memory."""
    with Path("/proc/self/maps").open() as lines:
        mapped = {line.split(maxsplit=5)[-1].strip() for line in lines}
    return {*descriptors(root), *(path for path in mapped if path.startswith(str(root)))}


def together(pool: ThreadPoolExecutor, act: Callable[[], None]) -> None:
    """Let all threads of the pool do this at once."""
    barrier = threading.Barrier(THREADS)

    def one(_: int) -> None:
        barrier.wait()
        act()

    for _ in pool.map(one, range(THREADS)):
        pass


def keywords(folder: KeywordFolder, name: str) -> KeywordIndex:
    return folder.of(name, name, lambda: CollectionNotFound(name))


def make_indexes(root: Path, names: list[str]) -> None:
    """Make indexes with one entry each, which has the name of the index."""
    with closing(KeywordFolder(root)) as folder:
        for name in names:
            index = keywords(folder, name)
            index.create()
            index.upsert([Entry(name, f"every {name}", {})])


def read_index(index: KeywordIndex, name: str) -> None:
    """Read every file of an index."""
    assert ids(index.search("every", 9, None)) == [name]
    assert index.terms([name]) == {name: f"every {name}"}


def test_few_keyword_indexes_are_open_however_many_are_searched_by_threads_that_live_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callslip.stores.fulltext.index.MOST_OPEN", MOST, raising=False)
    monkeypatch.setattr(
        "callslip.stores.fulltext.stored_terms.MOST_READERS", READERS, raising=False
    )
    make_indexes(tmp_path, NAMES)
    folder = KeywordFolder(tmp_path)
    indexes = {name: keywords(folder, name) for name in NAMES}  # as the scopes keep them
    with ThreadPoolExecutor(THREADS) as pool:
        for name in NAMES:
            together(pool, lambda: read_index(indexes[name], name))  # noqa: B023
            assert len(descriptors(tmp_path)) <= MOST * (2 * READERS + 2)
        folder.close()
        assert opened(tmp_path) == set()
        read_index(indexes["c0"], "c0")  # a later use opens it again


def test_an_index_is_closed_while_threads_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callslip.stores.fulltext.index.MOST_OPEN", 1, raising=False)
    monkeypatch.setattr(
        "callslip.stores.fulltext.stored_terms.MOST_READERS", READERS, raising=False
    )
    make_indexes(tmp_path, NAMES[:2])
    with closing(KeywordFolder(tmp_path)) as folder, ThreadPoolExecutor(THREADS) as pool:

        def read() -> None:
            for number in range(40):
                name = NAMES[number % 2]
                read_index(keywords(folder, name), name)

        together(pool, read)
        assert len(descriptors(tmp_path)) <= 2 * READERS + 2
    assert opened(tmp_path) == set()


class ClosedMeanwhile(StoredTerms):
    """Terms whose file another thread closes as soon as it is opened."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "_readers" and value.here != (0, 0):  # type: ignore[attr-defined]
            self.close()


def test_terms_are_read_although_another_thread_closes_their_file(tmp_path: Path) -> None:
    stored = ClosedMeanwhile(tmp_path / "terms.db")
    stored.put([("a", "every a", {}, "")])
    assert stored.get(["a"]) == {"a": "every a"}


def test_an_index_that_another_process_drops_or_writes_keeps_no_removed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callslip.stores.open_files.LOOK_SECONDS", 0.0, raising=False)
    make_indexes(tmp_path, NAMES[:3])
    with closing(KeywordFolder(tmp_path)) as folder, closing(KeywordFolder(tmp_path)) as other:
        indexes = {name: keywords(folder, name) for name in NAMES[:3]}
        for name, index in indexes.items():
            read_index(index, name)
        keywords(other, "c0").drop()
        keywords(other, "c1").delete(["c1"])
        keywords(other, "c1").compact()
        other.close()
        read_index(indexes["c2"], "c2")
        assert not [path for path in opened(tmp_path) if path.endswith(" (deleted)")]
        with pytest.raises(CollectionNotFound):
            indexes["c0"].search("every", 9, None)
        assert indexes["c1"].search("every", 9, None) == []


def test_few_partitions_of_the_tfidf_store_are_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition, "SMALL", 1)  # so that there are snapshots
    monkeypatch.setattr("callslip.stores.tfidf.store._OPEN_PARTITIONS", MOST)
    monkeypatch.setattr("callslip.stores.tfidf.database.MOST_IDLE", 1, raising=False)
    with closing(TfidfStore(tmp_path)) as store, ThreadPoolExecutor(THREADS) as pool:
        for name in NAMES:
            store.ensure_schema(CollectionSchema(name, VectorSpec(2)))
            store.batch_upsert_chunks(name, [chunk("a"), chunk("b")])
            store.refit(name)

        all_read = threading.Barrier(THREADS)

        def read(name: str) -> None:
            with store._partition(name, "").searching():
                all_read.wait()

        for name in NAMES:
            together(pool, lambda: read(name))  # noqa: B023
            assert len(descriptors(tmp_path)) <= MOST * (THREADS + 1 + 1 + 3) + THREADS + 2
    assert opened(tmp_path) == set()


def test_a_partition_that_another_process_drops_or_refits_keeps_no_removed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition, "SMALL", 1)
    monkeypatch.setattr("callslip.stores.open_files.LOOK_SECONDS", 0.0, raising=False)
    with closing(TfidfStore(tmp_path)) as store, closing(TfidfStore(tmp_path)) as other:
        for name in NAMES[:3]:
            other.ensure_schema(CollectionSchema(name, VectorSpec(2)))
            other.batch_upsert_chunks(name, [chunk("a"), chunk("b")])
            other.refit(name)
            assert ids(store.vector_query(name, EAST, 9)) == ["a", "b"]
        other.drop_collection("c0")
        other.compact("c1")
        other.close()
        assert ids(store.vector_query("c2", EAST, 9)) == ["a", "b"]
        assert not [path for path in opened(tmp_path) if path.endswith(" (deleted)")]
        with pytest.raises(CollectionNotFound):
            store.count("c0")
        assert ids(store.vector_query("c1", EAST, 9)) == ["a", "b"]
