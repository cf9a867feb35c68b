"""What is special about the TF-IDF store: its snapshots, its files, and who else works on them."""

import errno
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from multiprocessing.context import SpawnProcess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from long_forms import sample
from processes import waits_until
from sklearn.feature_extraction.text import TfidfVectorizer
from store_cases import EAST, chunk, ids, unit

from callslip.config.settings import Settings
from callslip.errors import CollectionNotFound, StoreDown, StoreReadOnly, TransientError
from callslip.stores.metrics import METRICS, scores
from callslip.stores.properties.filters import matches, parse
from callslip.stores.records import ChunkRecord, CollectionSchema, RetrieverHit, VectorSpec, visible
from callslip.stores.registry import make_store
from callslip.stores.tfidf import partition
from callslip.stores.tfidf.nearest import Part, Vectors, nearest
from callslip.stores.tfidf.store import TfidfStore

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def tfidf(tmp_path: Path) -> Iterator[TfidfStore]:
    """A store in a folder of its own, with an empty collection `c` of two dimensions."""
    with closing(TfidfStore(tmp_path)) as store:
        store.ensure_schema(CollectionSchema("c", VectorSpec(2)))
        yield store


@pytest.fixture
def large(tfidf: TfidfStore, monkeypatch: pytest.MonkeyPatch) -> TfidfStore:
    """The store where 40 chunks are many, so that there are snapshots; it holds 40."""
    monkeypatch.setattr(partition, "SMALL", 4)
    tfidf.batch_upsert_chunks("c", records_of(40))
    return tfidf


def records_of(number: int, start: int = 0) -> list[ChunkRecord]:
    """Chunks of which each has one word for itself, one with ten others, and one with all."""
    return [
        chunk(
            f"c{i:03}",
            terms=f"every own{i} tens{i // 10}",
            vector=unit(np.cos(i), np.sin(i)),
            ordinal=i,
        )
        for i in range(start, start + number)
    ]


def folder_of(root: Path) -> Path:
    """The folder of the only collection."""
    (database,) = root.glob("*/chunks.db")
    return database.parent


def snapshots(root: Path) -> list[Path]:
    """The folders of snapshots and drafts."""
    return [path for path in folder_of(root).iterdir() if path.is_dir()]


def by_sklearn(texts: dict[str, str], query: str) -> dict[str, float]:
    """The scores above 0 of a plain TfidfVectorizer that was fitted on all texts."""
    vectorizer = TfidfVectorizer(
        tokenizer=str.split, token_pattern=None, lowercase=False, ngram_range=(1, 2)
    )
    try:
        matrix = vectorizer.fit_transform(texts.values())
    except ValueError:  # it refuses to fit on no word at all
        return {}
    found = (matrix @ vectorizer.transform([query]).T).toarray()[:, 0]
    return {id_: score for id_, score in zip(texts, found, strict=True) if score > 0}


def agree(hits: Sequence[RetrieverHit], expected: dict[str, float]) -> None:
    """The same scores, and so the same ranking but for what rounding decides."""
    assert {hit.chunk_id: hit.score for hit in hits} == pytest.approx(expected, rel=1e-5)
    found = [hit.score for hit in hits]
    assert found == sorted(found, reverse=True)


WORDS = st.sampled_from([*"abcdefg", "출산", "장려금", "c++"])
TEXTS = st.lists(WORDS, max_size=9).map(" ".join)
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(st.lists(TEXTS, min_size=1, max_size=20), st.lists(TEXTS, min_size=3, max_size=3))
def test_the_keyword_retriever_is_a_plain_tfidf_vectorizer(
    tfidf: TfidfStore, texts: list[str], queries: list[str]
) -> None:
    tfidf.delete_documents("c", ["doc"])
    tfidf.batch_upsert_chunks("c", [chunk(f"c{i}", terms=text) for i, text in enumerate(texts)])
    named = {f"c{i}": text for i, text in enumerate(texts)}
    for query in queries:
        agree(tfidf.keyword_query("c", query, 99), by_sklearn(named, query))


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.none() | TEXTS), min_size=1, max_size=30),
    st.lists(TEXTS, min_size=2, max_size=2),
)
def test_after_any_changes_and_a_refit_it_still_is(
    large: TfidfStore, changes: list[tuple[int, str | None]], queries: list[str]
) -> None:
    large.delete_documents("c", ["doc"])
    texts = {f"c{i:03}": f"every own{i} tens{i // 10} b c" for i in range(40)}
    large.batch_upsert_chunks("c", [chunk(i, terms=terms) for i, terms in texts.items()])
    large.refit("c")
    for number, terms in changes:
        id_ = f"c{number:03}"
        texts.pop(id_, None)
        large.delete_chunks("c", [id_])
        if terms is not None:
            texts[id_] = terms
            large.batch_upsert_chunks("c", [chunk(id_, terms=terms)])
        for query in queries:
            held = set(by_sklearn(texts, query))
            assert set(ids(large.keyword_query("c", query, 99))) == held
    large.refit("c")
    for query in queries:
        agree(large.keyword_query("c", query, 99), by_sklearn(texts, query))


def test_what_was_written_since_the_snapshot_is_found_and_what_went_is_not(
    large: TfidfStore, tmp_path: Path
) -> None:
    large.refit("c")
    assert len(snapshots(tmp_path)) == 1
    assert ids(large.keyword_query("c", "own7", 9)) == ["c007"]
    with closing(TfidfStore(tmp_path)) as other:
        other.batch_upsert_chunks("c", [chunk("new", terms="own7 newword newer")])
        other.delete_chunks("c", ["c008"])
    assert set(ids(large.keyword_query("c", "own7", 9))) == {"c007", "new"}
    assert ids(large.keyword_query("c", "newword newer", 9)) == ["new"]
    assert large.keyword_query("c", "own8", 9) == []
    assert len(large.keyword_query("c", "every", 99)) == 39
    assert len(large.vector_query("c", EAST, 99)) == 40
    where = parse({"ordinal !=": 3}, None)
    assert large.count("c", where) == len(large.vector_query("c", EAST, 99, where)) == 39
    large.batch_upsert_chunks("c", [chunk("new", terms="other"), chunk("c007", terms="other")])
    assert large.keyword_query("c", "own7 newword", 9) == []
    assert set(ids(large.keyword_query("c", "other", 9))) == {"new", "c007"}


def test_every_process_scores_alike_between_two_fits(large: TfidfStore, tmp_path: Path) -> None:
    large.refit("c")
    for i in range(4):
        large.batch_upsert_chunks("c", [chunk(f"new{i}", terms=f"every tens1 fresh{i} fresh")])
        large.keyword_query("c", "every", 9)
    with closing(TfidfStore(tmp_path)) as other:
        for query in ("every", "tens1 fresh", "fresh fresh1", "own3 tens0 every fresh2"):
            assert other.keyword_query("c", query, 99) == large.keyword_query("c", query, 99)


def test_maintenance_refits_what_is_due_and_only_that(large: TfidfStore, tmp_path: Path) -> None:
    large.maintain()
    first = snapshots(tmp_path)
    assert len(first) == 1
    large.batch_upsert_chunks("c", records_of(3, start=100))
    large.maintain()
    assert snapshots(tmp_path) == first
    large.batch_upsert_chunks("c", records_of(3, start=200))
    large.maintain()
    second = snapshots(tmp_path)
    assert len(second) == 1
    assert second != first
    assert len(large.keyword_query("c", "every", 99)) == 46


def test_a_collection_that_got_small_needs_no_snapshot(large: TfidfStore, tmp_path: Path) -> None:
    large.maintain()
    large.delete_chunks("c", [f"c{i:03}" for i in range(38)])
    assert ids(large.keyword_query("c", "own39", 9)) == ["c039"]
    large.maintain()
    assert snapshots(tmp_path) == []
    assert ids(large.keyword_query("c", "own39", 9)) == ["c039"]


def test_a_search_refits_what_nobody_maintained(large: TfidfStore, tmp_path: Path) -> None:
    assert snapshots(tmp_path) == []
    texts = {f"c{i:03}": f"every own{i} tens{i // 10}" for i in range(40)}
    agree(large.keyword_query("c", "tens1 own11", 99), by_sklearn(texts, "tens1 own11"))
    assert len(snapshots(tmp_path)) == 1


def test_a_refit_without_room_on_the_disk_fails_and_leaves_none_of_its_files(
    large: TfidfStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the room, a write to a mapped file would end the process (SIGBUS)."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (folder_of(tmp_path) / "killed.draft").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", full)
        with pytest.raises(StoreReadOnly):
            large.maintain()
        assert snapshots(tmp_path) == []
        assert ids(large.keyword_query("c", "own7", 9)) == ["c007"]
        assert snapshots(tmp_path) == []
    large.maintain()
    assert [path.suffix for path in snapshots(tmp_path)] == [""]


def test_a_snapshot_is_swapped_while_others_search(large: TfidfStore) -> None:
    wrong: list[object] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            try:
                if ids(large.keyword_query("c", "own7", 9)) != ["c007"]:
                    wrong.append("keyword")
                if len(large.vector_query("c", EAST, 30)) != 30:
                    wrong.append("vector")
            except Exception as error:
                wrong.append(error)

    searchers = [threading.Thread(target=search) for _ in range(2)]
    for searcher in searchers:
        searcher.start()
    for i in range(15):
        large.batch_upsert_chunks("c", [chunk(f"extra{i}", terms="every")])
        large.refit("c")
    done.set()
    for searcher in searchers:
        searcher.join()
    assert wrong == []


def test_collections_and_tenants_have_snapshots_of_their_own(
    large: TfidfStore, tmp_path: Path
) -> None:
    large.ensure_schema(CollectionSchema("법령 A/1", VectorSpec(2), tenants=True))
    for tenant in ("서울시", "부산시"):
        large.ensure_tenant("법령 A/1", tenant)
        texts = [chunk(f"{tenant}{i}", terms=f"{tenant} own{i}") for i in range(9)]
        large.batch_upsert_chunks("법령 A/1", texts, tenant=tenant)
    large.maintain()
    assert len(list(tmp_path.glob("*/*/index.npz"))) == 3
    assert ids(large.keyword_query("법령 A/1", "own3", 9, tenant="부산시")) == ["부산시3"]
    assert large.keyword_query("법령 A/1", "서울시", 9, tenant="부산시") == []
    assert ids(large.keyword_query("c", "own3", 9)) == ["c003"]
    large.drop_tenant("법령 A/1", "서울시")
    large.drop_collection("c")
    assert len(list(tmp_path.glob("*/chunks.db"))) == 1


def test_folders_that_a_crash_left_are_removed_and_no_others(
    tfidf: TfidfStore, tmp_path: Path
) -> None:
    for name in ("0123456789abcdef", "mine"):
        (tmp_path / name).mkdir()
    tfidf.maintain()
    kept = {path for path in tmp_path.iterdir() if path.is_dir()}
    assert kept == {folder_of(tmp_path), tmp_path / "mine"}


class Trap:
    """Leaves a mark where it is unpickled."""

    mark = ""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.mkdir, (self.mark,)


def plant_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps(Trap()))


def plant_object_array(path: Path) -> None:
    held = np.array([Trap()], dtype=object)
    if path.suffix == ".npz":
        np.savez(path, keys=held, grams=held)
    else:
        np.save(path, held, allow_pickle=True)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    """Change a byte in the middle."""
    held = bytearray(path.read_bytes())
    held[len(held) // 2] ^= 0xFF
    path.write_bytes(held)


def plant_other_arrays(path: Path) -> None:
    """A sound file of another content."""
    with path.open("wb") as file:
        np.savez(file, keys=np.arange(40))


def empty(path: Path) -> None:
    path.write_bytes(b"")


ARRAYS = ("index.npz", "indices.npy", "data.npy", "vectors0.npy")

DAMAGE = [
    *((name, harm) for name in ARRAYS for harm in (cut, empty, Path.unlink)),
    *((name, plant_pickle) for name in (*ARRAYS, "words.json")),
    *((name, plant_object_array) for name in ARRAYS),
    *((name, plant_other_arrays) for name in ARRAYS),
    *(("words.json", harm) for harm in (cut, empty, Path.unlink)),
    *((name, flip) for name in ("index.npz", "indices.npy", "data.npy")),
]


@pytest.mark.parametrize(("name", "harm"), DAMAGE)
def test_a_damaged_snapshot_is_never_unpickled_and_is_made_again(
    large: TfidfStore,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    harm: Callable[[Path], object],
) -> None:
    monkeypatch.setattr(Trap, "mark", str(tmp_path / "trapped"))
    large.refit("c")
    (snapshot,) = snapshots(tmp_path)
    harm(snapshot / name)
    with closing(TfidfStore(tmp_path)) as other:
        assert ids(other.keyword_query("c", "own7", 9)) == ["c007"]
        assert len(other.vector_query("c", EAST, 99)) == 40
    assert not (tmp_path / "trapped").exists()
    assert "snapshot of c is damaged" in caplog.text
    (renewed,) = snapshots(tmp_path)
    assert renewed != snapshot
    assert ids(large.keyword_query("c", "own8", 9)) == ["c008"]


def test_nothing_is_too_little_to_be_answered(large: TfidfStore) -> None:
    large.delete_documents("c", ["doc"])
    assert large.keyword_query("c", "every", 9) == []
    assert large.vector_query("c", EAST, 9) == []
    large.refit("c")
    large.batch_upsert_chunks("c", [chunk("one", terms="only this")])
    assert ids(large.keyword_query("c", "this", 9)) == ["one"]
    assert large.keyword_query("c", "unknown words", 9) == []
    large.batch_upsert_chunks("c", [chunk(f"empty{i}", terms="  ") for i in range(9)])
    large.refit("c")
    assert ids(large.keyword_query("c", "only", 9)) == ["one"]
    large.delete_chunks("c", ["one"])
    large.refit("c")
    assert large.keyword_query("c", "only", 9) == []
    assert len(large.vector_query("c", EAST, 99)) == 9


def keep_writing(folder: Path) -> None:
    """Write batches of ten, replacing and deleting some, until killed."""
    with closing(TfidfStore(folder)) as store:
        for start in range(0, 1_000_000, 10):
            store.batch_upsert_chunks("c", [chunk(f"w{i % 200}") for i in range(start, start + 10)])
            if start % 50 == 0:
                store.delete_chunks("c", [f"w{start % 200}"])


def keep_refitting(folder: Path) -> None:
    """Change a chunk and refit until killed."""
    partition.SMALL = 4
    with closing(TfidfStore(folder)) as store:
        for i in range(1_000_000):
            store.batch_upsert_chunks("c", [chunk("turn", terms=f"every turn{i}")])
            store.refit("c")


@pytest.fixture
def start() -> Iterator[Callable[..., SpawnProcess]]:
    """Starts processes that are killed at the end of the test."""
    started: list[SpawnProcess] = []

    def start(target: Callable[..., None], *arguments: object) -> SpawnProcess:
        process = SPAWN.Process(target=target, args=arguments)
        process.start()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.join()


@pytest.mark.long
@pytest.mark.parametrize("target", [keep_writing, keep_refitting])
def test_a_process_killed_at_any_moment_leaves_a_store_that_answers(
    large: TfidfStore,
    tmp_path: Path,
    start: Callable[..., SpawnProcess],
    target: Callable[[Path], None],
) -> None:
    def changes() -> int:
        with closing(sqlite3.connect(folder_of(tmp_path) / "chunks.db")) as connection:
            return int(connection.execute("SELECT changes FROM state").fetchone()[0])

    for pause in sample((0.0, 0.003, 0.007, 0.02, 0.05), 3):
        before = changes()
        process = start(target, tmp_path)
        assert waits_until(lambda least=before + 5: changes() > least)
        time.sleep(pause)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        with closing(TfidfStore(tmp_path)) as fresh:
            count = fresh.count("c")
            assert len(fresh.find_ids("c")) == count
            assert len(fresh.keyword_query("c", "every", 999)) == count
            assert len(fresh.vector_query("c", EAST, 999)) == count
            assert fresh.count("c", parse({"document_id": "doc"}, None)) == count
            assert ids(fresh.keyword_query("c", "own7", 9)) == ["c007"]
            assert fresh.batch_upsert_chunks("c", [chunk("after")]).stored == ("after",)
    large.batch_upsert_chunks("c", [chunk("last")])
    large.refit("c")
    assert len(snapshots(tmp_path)) == 1


def refit_often(folder: Path, name: str) -> None:
    """Write and refit, ten times."""
    partition.SMALL = 4
    with closing(TfidfStore(folder)) as store:
        for i in range(10):
            store.batch_upsert_chunks("c", [chunk(f"{name}{i}", terms=f"every {name}")])
            store.refit("c")


@pytest.mark.long
def test_two_processes_that_refit_at_once_do_no_harm(
    large: TfidfStore, tmp_path: Path, start: Callable[..., SpawnProcess]
) -> None:
    both = [start(refit_often, tmp_path, name) for name in ("left", "right")]
    while any(process.is_alive() for process in both):
        assert ids(large.keyword_query("c", "own7", 9)) == ["c007"]
    assert [process.exitcode for process in both] == [0, 0]
    assert len(large.keyword_query("c", "left right", 99)) == 20
    large.refit("c")
    assert len(snapshots(tmp_path)) == 1
    assert len(large.keyword_query("c", "every", 99)) == 60


def use_read_only(folder: Path, output: "multiprocessing.Queue[object]") -> None:
    """Search and try to write as a user who may not write there."""
    try:
        with tempfile.TemporaryDirectory() as other, closing(TfidfStore(Path(other))) as store:
            store.ensure_schema(CollectionSchema("c", VectorSpec(2)))
            store.batch_upsert_chunks("c", records_of(1100))
            store.keyword_query("c", "every", 9)  # imports what only root may read
        if os.geteuid() == 0:
            os.setuid(65534)
        with closing(TfidfStore(folder)) as store:
            found = sorted(ids(store.keyword_query("c", "own7", 9)))
            near = store.vector_query("c", EAST, 99)
            output.put(((found, len(near)), store.count("c", parse({"ordinal <": 5}, None))))
            for write in (
                lambda: store.batch_upsert_chunks("c", [chunk("new")]),
                lambda: store.delete_chunks("c", ["c007"]),
                lambda: store.ensure_schema(CollectionSchema("d", VectorSpec(2))),
                lambda: store.refit("c"),
            ):
                try:
                    write()
                except StoreReadOnly as error:
                    output.put(type(error).__name__)
    except BaseException as error:
        output.put(repr(error))


@pytest.mark.long
@pytest.mark.parametrize("fitted", [True, False])
@pytest.mark.parametrize("in_use", [True, False])
def test_a_folder_that_cannot_be_written_is_searched_and_takes_nothing(
    start: Callable[..., SpawnProcess], fitted: bool, in_use: bool
) -> None:
    root = Path(tempfile.mkdtemp())  # where another user may look
    with closing(TfidfStore(root)) as store:
        store.ensure_schema(CollectionSchema("c", VectorSpec(2)))
        store.batch_upsert_chunks("c", records_of(1100))
        if fitted:
            store.refit("c")
            store.batch_upsert_chunks("c", [chunk("later", terms="own7")])
        if not in_use:
            store.close()
        folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
        for path in folders:
            path.chmod(0o555)
        try:
            output: multiprocessing.Queue[object] = SPAWN.Queue()
            start(use_read_only, root, output)
            found = ["c007", "later"] if fitted else ["c007"]
            assert output.get(timeout=60) == ((found, 99), 6 if fitted else 5)
            assert [output.get(timeout=60) for _ in range(4)] == ["StoreReadOnly"] * 4
        finally:
            for path in folders:
                path.chmod(0o755)
    shutil.rmtree(root)


@pytest.mark.parametrize("content", [b"not a database " * 500, b""])
def test_a_damaged_database_is_a_store_that_is_down_and_names_its_collection(
    tfidf: TfidfStore, tmp_path: Path, content: bytes
) -> None:
    tfidf.ensure_schema(CollectionSchema("other", VectorSpec(2)))
    tfidf.batch_upsert_chunks("c", [chunk("a")])
    tfidf.close()
    path = next(p for p in tmp_path.glob("*/chunks.db") if b"body of a" in p.read_bytes())
    path.write_bytes(content)
    with closing(TfidfStore(tmp_path)) as store:
        for call in (
            lambda: store.keyword_query("c", "every", 9),
            lambda: store.vector_query("c", EAST, 9),
            lambda: store.batch_upsert_chunks("c", [chunk("b")]),
            lambda: store.count("c"),
            store.maintain,
        ):
            with pytest.raises(StoreDown, match="collection c "):
                call()
        store.batch_upsert_chunks("other", [chunk("b")])
        assert store.count("other") == 1
        store.drop_collection("c")
        store.maintain()
        store.ensure_schema(CollectionSchema("c", VectorSpec(2)))
        assert store.count("c") == 0


def test_a_folder_that_is_a_file_is_a_store_that_is_down(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with closing(TfidfStore(tmp_path / "file")) as store, pytest.raises(StoreDown):
        store.ping()


def test_a_collection_dropped_by_another_process_is_gone_at_once(
    tfidf: TfidfStore, tmp_path: Path
) -> None:
    tfidf.batch_upsert_chunks("c", [chunk("a")])
    assert ids(tfidf.vector_query("c", EAST, 9)) == ["a"]
    with closing(TfidfStore(tmp_path)) as other:
        other.drop_collection("c")
    for call in (lambda: tfidf.count("c"), lambda: tfidf.batch_upsert_chunks("c", [chunk("b")])):
        with pytest.raises(CollectionNotFound):
            call()
    assert list(tmp_path.glob("*/chunks.db")) == []


def test_a_writer_that_waits_too_long_gives_up(
    tfidf: TfidfStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callslip.stores.tfidf.database.BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(folder_of(tmp_path) / "chunks.db")) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreDown, match="was being written"):
            tfidf.batch_upsert_chunks("c", [chunk("a")])
        assert tfidf.count("c") == 0
    assert tfidf.batch_upsert_chunks("c", [chunk("a")]).stored == ("a",)


def test_more_collections_than_are_kept_open_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callslip.stores.tfidf.store._OPEN_PARTITIONS", 2)
    with closing(TfidfStore(tmp_path)) as store:
        for i in range(5):
            store.ensure_schema(CollectionSchema(f"c{i}", VectorSpec(2)))
            store.batch_upsert_chunks(f"c{i}", [chunk(f"in {i}")])
        for i in (0, 4, 1, 3, 2, 0):
            assert ids(store.keyword_query(f"c{i}", "every", 9)) == [f"in {i}"]


def test_the_folder_of_the_settings_is_taken(tmp_path: Path) -> None:
    with closing(make_store(Settings(data_dir=tmp_path), "tfidf")) as store:
        assert store.collections() == []
    assert (tmp_path / "tfidf" / "catalog.db").exists()


FLOATS = st.one_of(
    st.floats(-4, 4, width=32),
    st.sampled_from([0.0, 1e-38, 1e-30, 1e18, 3e38, -3e38]),
)


@example([[0.0] * 3] * 19 + [[0.0, 0.0, 3e38]], [0.0, 3e38, 3e38], 1, "l2-squared")
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.lists(FLOATS, min_size=3, max_size=3), min_size=1, max_size=40),
    st.lists(FLOATS, min_size=3, max_size=3).filter(any),
    st.integers(1, 6),
    st.sampled_from(METRICS),
)
def test_the_best_vectors_of_a_rough_pass_are_the_best_of_all(
    rows: list[list[float]], query: list[float], limit: int, metric: str
) -> None:
    held, request = np.array(rows, np.float32), np.array(query, np.float32)
    vectors = Vectors.of(np.arange(len(held)), held)
    slots, found = nearest(metric, request, [Part(vectors, vectors.slots, 0)], limit)  # type: ignore[arg-type]
    expected = sorted(scores(metric, request, held), reverse=True)[:limit]  # type: ignore[arg-type]
    assert sorted(found, reverse=True)[:limit] == expected
    assert len(set(slots.tolist())) == len(slots)


def test_patterns_match_as_the_filter_says() -> None:
    texts = ["", "a", "ab", "aba", "abab", "a\nb", "bab", "aa"]
    for pattern in ("*", "a*", "*a", "a*a", "*b*", "a*b*a", "ab*ab", "a*ab*b", "**", "aa*a"):
        first, *rest = pattern.split("*")
        parts = (first, *(part for part in rest[:-1] if part), *rest[-1:])
        where = parse({"p ~": pattern}, None)
        assert where is not None
        for text in texts:
            expected = re.fullmatch(".*".join(map(re.escape, parts)), text, re.DOTALL)
            assert matches(where, {"p": text}) == (expected is not None), (pattern, text)


def test_a_filter_on_a_field_sees_what_the_oracle_sees(large: TfidfStore) -> None:
    large.refit("c")
    where = parse({"ordinal >": 10, "document_id ~": "d*"}, {"ordinal <": 15, "ordinal": 30})
    assert where is not None
    expected = {c.chunk_id for c in records_of(40) if matches(where, visible(c))}
    assert set(ids(large.keyword_query("c", "every", 99, where))) == expected
    assert issubclass(StoreDown, TransientError)
