"""What can go wrong with the Chroma store's two halves, and what then holds."""

import base64
import gc
import multiprocessing
import random
import socket
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from traceback import walk_tb
from types import SimpleNamespace
from typing import Any

import pytest
from chroma_server import TENANT, chroma_server, chroma_settings
from faulty_proxy import Faults, faulty_proxy
from filelock import FileLock
from loopback import LoopbackServer
from processes import waits_until
from store_cases import EAST, chunk, ids, unit

from callslip.config.settings import Settings
from callslip.errors import CollectionNotFound, KeywordsDown, StoreDown
from callslip.ingestion.records import unlike
from callslip.stores.chroma import connection, table
from callslip.stores.chroma.metadata import RECORD
from callslip.stores.chroma.names import slug
from callslip.stores.chroma.pieces import MOST, pieces
from callslip.stores.chroma.store import ChromaStore
from callslip.stores.chroma.table import TEXT, Row, Table
from callslip.stores.contract import Store
from callslip.stores.fulltext import index as keyword_index
from callslip.stores.fulltext.contract import Entry
from callslip.stores.fulltext.index import KeywordIndex
from callslip.stores.fulltext.stored_terms import StoredTerms
from callslip.stores.levels import PASSAGE
from callslip.stores.properties.filters import parse
from callslip.stores.records import ChunkRecord, CollectionSchema, DocumentRecord, VectorSpec
from callslip.stores.registry import make_store

pytest_plugins = ["store_fixtures"]

OLD, NEW = "2026-01-01T00:00:00.000000+00:00", "2026-01-02T00:00:00.000000+00:00"


@pytest.fixture(scope="module")
def store(chroma_at: Settings) -> Iterator[Store]:
    """Of all stores only this one."""
    with closing(make_store(chroma_at, "chroma")) as made:
        yield made


@pytest.fixture
def keywords(chroma_at: Settings, collection_name: str) -> KeywordIndex:
    """The keyword half of the collection alone."""
    return KeywordIndex(chroma_at.index_dir / slug(collection_name), collection_name)


def test_a_crash_between_the_halves_shows_and_is_repaired_by_repeating(
    store: Store, collection_name: str, keywords: KeywordIndex
) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a")])
    keywords.delete(["a"])
    assert store.chunk_ids(collection_name, "doc") == {"vector": {"a"}, "keyword": set()}
    found = store.chunk_ids_of(collection_name, ["doc", "other"])
    assert found["doc"] == {"vector": {"a"}, "keyword": set()}
    assert found["other"] == {"vector": set(), "keyword": set()}
    store.batch_upsert_chunks(collection_name, [chunk("a")])
    assert store.chunk_ids(collection_name, "doc") == {"vector": {"a"}, "keyword": {"a"}}


def test_a_change_that_only_the_vector_half_has_is_written_again(
    store: Store, collection_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object) -> None:
        raise KeywordsDown("the disk hangs")

    old = chunk("a", heading="Old", properties={"state": "draft"}, created_at=OLD, updated_at=OLD)
    new = replace(old, heading="New", properties={"state": "final"}, updated_at=NEW)
    version: Any = SimpleNamespace(collection=collection_name, tenant="", document_id="doc")
    store.batch_upsert_chunks(collection_name, [old])
    assert unlike(version, store, {"doc": [old]})["doc"] == ([], [])
    with monkeypatch.context() as broken:
        broken.setattr(KeywordIndex, "upsert", down)
        with pytest.raises(KeywordsDown):
            store.batch_upsert_chunks(collection_name, [new])
    assert store.copies(collection_name, ["a"])[0].heading == "Old"
    (none, [changed]) = unlike(version, store, {"doc": [new]})["doc"]
    assert (none, changed.heading, changed.updated_at) == ([], "New", NEW)
    store.batch_upsert_chunks(collection_name, [changed])
    assert store.copies(collection_name, ["a"])[0].heading == "New"
    assert unlike(version, store, {"doc": [new]})["doc"] == ([], [])


def test_filters_keep_the_nearest_whatever_share_passes_and_wherever_it_lies(
    store: Store, collection_name: str
) -> None:
    def at(position: int) -> ChunkRecord:
        marks = {"few": position % 100 == 0, "half": position % 2 == 0, "far": position >= 500}
        return chunk(f"{position:03}", vector=unit(1, position / 100), properties=marks)

    store.batch_upsert_chunks(collection_name, [at(position) for position in range(600)])
    everyone = [f"{position:03}" for position in range(600)]
    for mark, passing in (
        ("few", everyone[::100]),
        ("half", everyone[::2]),
        ("far", everyone[500:]),
    ):
        where = parse({mark: True}, None)
        assert ids(store.nearest(collection_name, EAST, 20, where)) == passing[:20]
    assert store.nearest(collection_name, EAST, 20, parse({"few": "no"}, None)) == []


def test_an_id_that_only_the_keyword_half_holds_harms_no_vector_query(
    store: Store, collection_name: str, keywords: KeywordIndex
) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a")])
    keywords.upsert([Entry("ghost", "every", {"document_id": "doc"})])
    where = parse({"document_id ~": "d*"}, None)
    assert ids(store.vector_query(collection_name, EAST, 5, where)) == ["a"]


def test_properties_that_an_older_index_did_not_keep_are_read_from_chroma(
    store: Store, collection_name: str, chroma_at: Settings
) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a", properties={"kind": "law"}), chunk("b")])
    StoredTerms(chroma_at.index_dir / slug(collection_name) / "terms.db").delete(["a"])
    assert store.properties(collection_name, ["b", "a"], ["kind"]) == {
        "b": {},
        "a": {"kind": "law"},
    }


def texts_of_chroma(folder: Path) -> set[str]:
    """The texts that Chroma has an index of."""
    with closing(sqlite3.connect(folder / "chroma" / "chroma.sqlite3")) as database:
        rows = database.execute("SELECT string_value FROM embedding_fulltext_search").fetchall()
    return {text for (text,) in rows if text}


def packed(text: str) -> str:
    """A text as earlier versions compressed it alone."""
    return base64.b85encode(zlib.compress(text.encode(), 1)).decode()


def upsert_documents(table: Table, rows: Sequence[Row]) -> None:
    """Write rows as they were written before texts were part of the metadata."""
    table._call(
        "upsert",
        ids=[row.id for row in rows],
        embeddings=[row.vector for row in rows],
        documents=[row.text for row in rows],
        metadatas=[dict(row.metadata) for row in rows],
    )


def upsert_alone(table: Table, rows: Sequence[Row]) -> None:
    """Write rows as they were written before texts and records were compressed together."""
    table._call(
        "upsert",
        ids=[row.id for row in rows],
        embeddings=[row.vector for row in rows],
        metadatas=[
            {**row.metadata, RECORD: packed(str(row.metadata[RECORD])), TEXT: packed(row.text)}
            for row in rows
        ],
    )


@pytest.mark.parametrize(
    ("earlier", "indexed"),
    [(upsert_documents, {"at first", "body of b"}), (upsert_alone, set())],
)
def test_texts_are_no_documents_of_chroma_and_rows_of_earlier_versions_are_read_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: Any, indexed: set[str]
) -> None:
    long = "가나다 " * 50
    with (
        chroma_server(tmp_path) as (url, _),
        closing(make_store(chroma_settings(url, tmp_path / "here"), "chroma")) as store,
    ):
        store.ensure_schema(CollectionSchema("c", VectorSpec(2)))
        with monkeypatch.context() as patched:
            patched.setattr(Table, "upsert", earlier)
            first = [chunk("a", body="at first"), chunk("b"), chunk("e", properties={"kind": "e"})]
            store.batch_upsert_chunks("c", first[:2])
            patched.setattr(Table, "upsert", upsert_alone)
            store.batch_upsert_chunks("c", first[2:])
        assert texts_of_chroma(tmp_path) == indexed
        assert [each.body for each in store.get_chunks("c", ["a"])] == ["at first"]
        restated = chunk("b", properties={"kind": "law"})
        store.batch_upsert_chunks("c", [chunk("a", body="later"), restated, chunk("d", body=long)])
        found = {each.chunk_id: each for each in store.get_chunks("c", ["a", "b", "d", "e"])}
        bodies = {name: each.body for name, each in found.items()}
        assert bodies == {"a": "later", "b": "body of b", "d": long, "e": "body of e"}
        assert (found["b"].properties, found["e"].properties) == ({"kind": "law"}, {"kind": "e"})
        assert texts_of_chroma(tmp_path) == indexed - {"at first"}
        store.batch_upsert_chunks("c", [chunk("b", body="later, too")])
        store.compact("c")
        assert not texts_of_chroma(tmp_path)
        assert [each.body for each in store.get_chunks("c", "bde")] == [
            *("later, too", long, "body of e"),
        ]
        assert not keys_of_chroma(tmp_path) & {RECORD, TEXT}


def keys_of_chroma(folder: Path) -> set[str]:
    """The keys of the metadata of all rows."""
    with closing(sqlite3.connect(folder / "chroma" / "chroma.sqlite3")) as database:
        return {key for (key,) in database.execute("SELECT key FROM embedding_metadata")}


def test_a_long_text_is_cut_to_few_pieces_and_a_shorter_one_leaves_none_of_them(
    store: Store, collection_name: str, chroma_at: Settings
) -> None:
    words = random.Random(1)
    long = " ".join(f"{words.getrandbits(64):x}" for _ in range(20_000))
    for body in (long, "short", "", long[:9_000], "\0 and \0"):
        store.batch_upsert_chunks(collection_name, [chunk("a", body=body)])
        assert [each.body for each in store.get_chunks(collection_name, ["a"])] == [body]
    assert max(len(pieces("{}", text)) for text in (long, "")) == MOST


def write_for_ever(folder: Path, start: int) -> None:
    """Commit 20 entries at a time until killed."""
    index = KeywordIndex(folder, "killed")
    for number in range(start, start + 1_000_000, 20):
        index.upsert([Entry(f"{number + i}", "every", {}) for i in range(20)])


@pytest.mark.long
def test_a_killed_writer_leaves_whole_commits_and_no_lock(tmp_path: Path) -> None:
    index = KeywordIndex(tmp_path / "index", "killed")
    index.create()
    for pause in (0.0, 0.005, 0.01, 0.02):
        before = index.count(None)
        writer = multiprocessing.get_context("spawn").Process(
            target=write_for_ever, args=(tmp_path / "index", before)
        )
        writer.start()
        assert waits_until(lambda start=before: index.count(None) > start)
        time.sleep(pause)
        writer.kill()
        writer.join()
        count = index.count(None)
        assert count % 20 == 0
        assert set(index.ids(None)) == {str(i) for i in range(count)}
    index.upsert([Entry("after", "later", {})])
    assert ids(index.search("later", 5, None)) == ["after"]


@pytest.mark.parametrize("act", ["put", "delete"])
def test_no_terms_are_left_of_a_chunk_that_the_index_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    index = KeywordIndex(tmp_path / "index", "terms")
    index.create()
    index.upsert([Entry("a", "every", {})])
    kept = StoredTerms(tmp_path / "index" / "terms.db")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(StoredTerms, act, killed)
        with suppress(KeyboardInterrupt):
            index.upsert([Entry("b", "every", {})])
        with suppress(KeyboardInterrupt):
            index.delete(["a"])
    assert set(kept.get(["a", "b"])) <= set(index.ids(None))
    index.delete(["a", "b"])
    assert (kept.get(["a", "b"]), index.ids(None)) == ({}, [])


def test_writers_wait_for_a_compaction_which_keeps_what_they_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    index = KeywordIndex(tmp_path / "index", "compact")
    index.create()
    index.upsert([Entry(i, "every", {}) for i in "ab"] + [Entry("gone", "xyzzymarker", {})])
    index.delete(["gone"])
    other = KeywordIndex(tmp_path / "index", "compact")
    for writer in (
        threading.Thread(target=other.upsert, args=([Entry("c", "every", {})],)),
        threading.Thread(target=other.delete, args=(["a"],)),
    ):

        def ids_before_a_write(where: None, writer: threading.Thread = writer) -> list[str]:
            present = KeywordIndex.ids(index, where)
            writer.start()
            writer.join(0.1)
            return present

        with monkeypatch.context() as patched:
            patched.setattr(index, "ids", ids_before_a_write)
            index.compact()
        writer.join()
    assert set(index.ids(None)) == {"b", "c"}
    files = [path for path in (tmp_path / "index").iterdir() if path.is_file()]
    assert not any(b"xyzzymarker" in path.read_bytes() for path in files)
    StoredTerms(tmp_path / "index" / "terms.db").delete("bc")  # "b" as a killed writer leaves it
    with closing(sqlite3.connect(tmp_path / "index" / "terms.db")) as terms, terms:
        terms.execute("CREATE TABLE terms (chunk_id TEXT PRIMARY KEY, terms TEXT NOT NULL)")
        terms.execute("INSERT INTO terms VALUES ('c', 'every')")  # of an earlier version
    index = KeywordIndex(tmp_path / "index", "compact")
    index.compact()
    assert set(index.ids(None)) == {"b", "c"}
    assert "1 entries have no properties" in caplog.text
    index.upsert([Entry("c", "every", {})])
    index.compact()
    assert index.ids(None) == ["c"]


def test_a_deletion_waits_for_a_compaction(
    store: Store, chroma_at: Settings, collection_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stays", "goes"):
        own = [chunk(f"{name}{n}", document_id=name, level=2) for n in range(3)]
        store.batch_upsert_documents(collection_name, [DocumentRecord(name, name, name, {})])
        store.batch_upsert_chunks(collection_name, own)
    rename = Table._rename
    with closing(make_store(chroma_at, "chroma")) as other:
        assert other.chunk_ids(collection_name, "goes")["vector"]
        deletion = threading.Thread(target=other.delete_documents, args=(collection_name, ["goes"]))

        def meanwhile(self: Table, name: str, to: str) -> None:
            if not deletion.ident:
                deletion.start()
                deletion.join(0.4)
            rename(self, name, to)

        monkeypatch.setattr(Table, "_rename", meanwhile)
        store.compact(collection_name)
        deletion.join()
    assert store.document_ids(collection_name) == {"stays"}
    assert store.chunk_ids(collection_name, "goes") == {"vector": set(), "keyword": set()}
    assert store.count(collection_name) == 3


class Killed(BaseException):
    """Ends a compaction where SIGKILL would."""


def kill_at(renaming: int, monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Call `act` until the rename of this number, counted from 1, which is not made."""
    rename, made = Table._rename, list[str]()

    def renamed(self: Table, name: str, to: str) -> None:
        made.append(name)
        if len(made) == renaming:
            raise Killed
        rename(self, name, to)

    with monkeypatch.context() as patched:
        patched.setattr(Table, "_rename", renamed)
        with pytest.raises(Killed):
            act()


@pytest.mark.long
@pytest.mark.parametrize("renaming", range(1, 7))
def test_a_killed_compaction_loses_nothing_where_the_collection_is_made_again(
    store: Store, collection_name: str, monkeypatch: pytest.MonkeyPatch, renaming: int
) -> None:
    store.batch_upsert_documents(collection_name, [DocumentRecord("doc", "d", "d", {})])
    store.batch_upsert_chunks(collection_name, [chunk("a"), chunk("b", level=1)])
    kill_at(renaming, monkeypatch, lambda: store.compact(collection_name))
    for _ in range(2):
        store.ensure_schema(store.schema(collection_name))
        assert store.chunk_ids(collection_name, "doc") == {"vector": {*"ab"}, "keyword": {*"ab"}}
        assert [each.document_id for each in store.get_documents(collection_name, ["doc"])]
        store.compact(collection_name)


@pytest.mark.parametrize("tenant", ["", "t"])
def test_nothing_that_a_killed_compaction_left_survives_the_collection(
    store: Store, monkeypatch: pytest.MonkeyPatch, tenant: str
) -> None:
    schema = CollectionSchema("dropped", VectorSpec(2), tenants=bool(tenant))

    def make() -> None:
        store.ensure_schema(schema)
        if tenant:
            store.ensure_tenant("dropped", tenant)

    for renaming in (1, 2):
        make()
        store.batch_upsert_chunks("dropped", [chunk("a")], tenant=tenant)
        kill_at(renaming, monkeypatch, lambda: store.compact("dropped", tenant=tenant))
        store.drop_collection("dropped")
        assert isinstance(store, ChromaStore)
        assert not [name for name in store._connection.names() if "dropped" in name]
    make()
    assert store.chunk_ids("dropped", tenant=tenant) == {"vector": set(), "keyword": set()}
    store.drop_collection("dropped")


def test_the_graph_of_a_large_table_goes_to_the_disk_less_often_from_the_next_start_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "LARGE_ROWS", 150)

    def open_store(url: str) -> ChromaStore:
        made = make_store(chroma_settings(url, tmp_path), "chroma")
        assert isinstance(made, ChromaStore)
        return made

    def writes(store: ChromaStore, start: int) -> int:
        """How often the ids of the graph have gone to the disk with 300 more rows."""
        seen = set()
        for at in range(start, start + 300, 30):
            rows = [chunk(f"{at + n}", level=PASSAGE) for n in range(30)]
            store.batch_upsert_chunks("large", rows)
            seen |= {path.stat().st_mtime_ns for path in tmp_path.rglob("index_metadata.pickle")}
        return len(seen)

    with chroma_server(tmp_path / "chroma") as (url, _), closing(open_store(url)) as store:
        store.ensure_schema(CollectionSchema("large", VectorSpec(2)))
        often = writes(store, 0)
        store.maintain()
        count = store.count("large")
    with chroma_server(tmp_path / "chroma") as (url, _), closing(open_store(url)) as store:
        assert store.count("large") == count
        assert writes(store, 300) == 1 < often  # that of the first start
        assert len(store.chunk_ids("large")["vector"]) == 600


def test_a_compaction_keeps_vectors_of_every_name(store: Store) -> None:
    named = {"old": VectorSpec(2), "new": VectorSpec(2)}
    store.ensure_schema(CollectionSchema("names", VectorSpec(2), named=named))
    store.batch_upsert_chunks("names", [replace(chunk("a"), named=dict.fromkeys(named, EAST))])
    store.compact("names")
    assert set(store.chunk_ids("names")) == {"vector", "vector:old", "vector:new", "keyword"}
    assert all(ids == {"a"} for ids in store.chunk_ids("names").values())
    store.drop_collection("names")


def test_a_writer_that_waits_too_long_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyword_index, "LOCK_SECONDS", 0.1)
    index = KeywordIndex(tmp_path / "index", "busy")
    index.create()
    with FileLock(tmp_path / "index.lock"), pytest.raises(StoreDown, match="busy is being written"):
        index.upsert([Entry("a", "x", {})])
    index.upsert([Entry("a", "x", {})])


def test_an_index_that_was_never_finished_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    index = KeywordIndex(tmp_path / "index", "half")
    with pytest.raises(CollectionNotFound):
        index.count(None)
    index.create()
    assert index.count(None) == 0


def test_an_index_that_cannot_be_read_is_a_store_that_is_down(tmp_path: Path) -> None:
    index = KeywordIndex(tmp_path / "index", "torn")
    index.create()
    (tmp_path / "index" / "meta.json").write_text("{")
    with pytest.raises(StoreDown, match="torn cannot be read"):
        index.count(None)


def test_a_server_that_died_is_a_store_that_is_down_until_it_is_back(tmp_path: Path) -> None:
    with chroma_server(tmp_path) as (url, server):
        store = make_store(chroma_settings(url, tmp_path), "chroma")
        with closing(store):
            store.ensure_schema(CollectionSchema("c", VectorSpec(2)))
            store.batch_upsert_chunks("c", [chunk("a")])
            server.kill()
            server.wait()
            for call in (
                store.ping,
                lambda: store.ensure_schema(CollectionSchema("c", VectorSpec(2))),
                lambda: store.batch_upsert_chunks("c", [chunk("b")]),
                lambda: store.vector_query("c", EAST, 5),
                lambda: store.get_chunks("c", ["a"]),
                lambda: store.chunk_ids("c", "doc"),
                lambda: store.delete_documents("c", ["doc"]),
                lambda: store.drop_collection("c"),
            ):
                with pytest.raises(StoreDown):
                    call()
    with chroma_server(tmp_path) as (url, _):
        store = make_store(chroma_settings(url, tmp_path), "chroma")
        with closing(store):
            assert ids(store.vector_query("c", EAST, 5)) == ["a"]


def test_an_error_has_the_traceback_of_its_own_call(
    chroma_at: Settings, collection_name: str
) -> None:
    with closing(make_store(chroma_at, "chroma")) as store:
        assert isinstance(store, ChromaStore)
        documents = store._scopes.of(collection_name).documents
        documents.drop()
        for _ in range(3):
            with pytest.raises(CollectionNotFound) as raised:
                documents.get(["a"])
            frames = [frame.f_code for frame, _ in walk_tb(raised.value.__traceback__)]
            assert frames.count(Table.get.__code__) == 1


class Broken(BaseHTTPRequestHandler):
    """A proxy whose server is away."""

    def do_GET(self) -> None:
        self.send_error(503)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def broken_url() -> Iterator[str]:
    """The address of a server that only answers 503."""
    with LoopbackServer(Broken) as server:
        yield f"http://127.0.0.1:{server.server_port}"


def test_a_server_that_answers_with_an_error_is_down(broken_url: str, tmp_path: Path) -> None:
    with closing(make_store(chroma_settings(broken_url, tmp_path), "chroma")) as store:
        with pytest.raises(StoreDown):
            store.ping()
        with pytest.raises(StoreDown):
            store.vector_query("c", EAST, 5)


def test_a_server_that_never_answers_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(connection, "PING_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with closing(make_store(chroma_settings(url, tmp_path), "chroma")) as store:
            with pytest.raises(StoreDown, match="not answer"):
                store.ping()
            with pytest.raises(StoreDown, match="not answer"):
                store.vector_query("c", EAST, 5)


def test_a_process_that_never_saw_the_server_reads_the_local_half(
    store: Store, chroma_at: Settings, collection_name: str
) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a", terms="every term")])
    elsewhere = chroma_settings("http://127.0.0.1:9", chroma_at.data_dir)
    with closing(make_store(elsewhere, "chroma")) as fresh:
        assert ids(fresh.keyword_query(collection_name, "term", 5)) == ["a"]
        assert fresh.terms(collection_name, ["a"]) == {"a": "every term"}
        assert [c.chunk_id for c in fresh.copies(collection_name, ["a", "b"])] == ["a"]
        with pytest.raises(StoreDown):
            fresh.get_chunks(collection_name, ["a"])


@pytest.mark.parametrize(
    ("raised", "reply"),
    [(Exception("<html>"), "not Chroma"), (connection.InternalError("x"), "internal error")],
)
def test_what_the_client_raises_for_a_server_gone_wrong_is_store_down(
    raised: Exception, reply: str
) -> None:
    with pytest.raises(StoreDown, match=reply), connection.answering():
        raise raised


@pytest.mark.long
@pytest.mark.parametrize("kind", ["a list", "another shape"])
def test_an_answer_of_another_program_is_forgotten(
    chroma_url: str, tmp_path: Path, kind: str
) -> None:
    faults = Faults()
    with faulty_proxy(int(chroma_url.rpartition(":")[2]), faults) as port:
        url = f"http://127.0.0.1:{port}"

        def write(*, at: int) -> int:
            """Write with a new client; the fault is at this request. The number of requests."""
            with closing(make_store(chroma_settings(url, tmp_path), "chroma")) as store:
                store.ping()
                faults.begin(kind, at)
                with suppress(StoreDown):
                    store.batch_upsert_chunks("forgotten", [chunk(f"{at}")])
                sent = faults.requests
                faults.begin()
                store.batch_upsert_chunks("forgotten", [chunk(f"{at}")])
                assert f"{at}" in ids(store.vector_query("forgotten", EAST, 50))
                return sent

        with closing(make_store(chroma_settings(url, tmp_path), "chroma")) as store:
            store.ensure_schema(CollectionSchema("forgotten", VectorSpec(2)))
            requests = write(at=-1)
            assert requests > 5
            for at in range(requests):
                write(at=at)
            store.drop_collection("forgotten")
    gc.collect()  # a socket that nobody closed fails the test here


class Like(BaseHTTPRequestHandler):
    """A program that answers like Chroma until a client asks who it is; connections stay open."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = b'"1.5.9"' if self.path.endswith("version") else b"{}"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def test_a_client_that_fails_at_its_first_request_leaves_no_socket() -> None:
    with LoopbackServer(Like) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        with closing(connection.Connection(url)) as made, pytest.raises(StoreDown):
            made.client()
    gc.collect()  # a socket that nobody closed fails the test here


def test_a_tenant_that_the_server_lacks_is_named_as_the_reason(chroma_url: str) -> None:
    with pytest.raises(StoreDown, match="no tenant"):
        connection.Connection(chroma_url, "another").names()


def test_a_graph_that_is_being_written_is_looked_for_again(
    chroma_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0

    def act(_: object) -> str:
        nonlocal looked
        looked += 1
        if looked < 3:
            raise connection.InternalError("hnsw segment reader: Nothing found on disk")
        return "found"

    opened = connection.Connection(chroma_url, TENANT)
    monkeypatch.setattr(opened, "_handle", lambda name: name)
    monkeypatch.setattr(connection, "_PAUSES", (0, 0))
    missing = CollectionNotFound("c")
    assert (opened.on("c", missing, act), looked) == ("found", 3)
    looked = -9
    with pytest.raises(StoreDown):
        opened.on("c", missing, act)
