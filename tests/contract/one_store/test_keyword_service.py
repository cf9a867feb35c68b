"""The service of the keyword index: its protocol, its key, and what holds while it is away."""

import json
import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest
from chroma_server import chroma_settings
from faulty_proxy import Faults, faulty_proxy
from keyword_parts import KEY, keyword_service, with_service
from processes import waits_until
from pydantic import SecretStr
from store_cases import EAST, chunk, ids

from callslip.api.keyword_wsgi import LARGEST_MB
from callslip.config.settings import KeywordSettings
from callslip.errors import (
    CollectionNotFound,
    InvalidFilter,
    KeywordsDown,
    KeywordsLost,
    SettingsError,
    StoreDown,
)
from callslip.http.deadline import until
from callslip.stores.chroma import filtered
from callslip.stores.chroma.table import Row, Table
from callslip.stores.contract import Store
from callslip.stores.fulltext import wire
from callslip.stores.fulltext.contract import Entry, Keywords, Reservable
from callslip.stores.fulltext.index import KeywordFolder
from callslip.stores.fulltext.service import KeywordService, check_key
from callslip.stores.properties.filters import Condition, Where, parse
from callslip.stores.properties.terms import PropertyTerm
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.stores.registry import make_store

pytest_plugins = ["store_fixtures"]

NOWHERE = KeywordSettings(url="http://127.0.0.1:9", key=KEY)


def missing() -> CollectionNotFound:
    return CollectionNotFound("no such index")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keyword")


@pytest.fixture(scope="module")
def at(folder: Path) -> Iterator[KeywordSettings]:
    """A service that runs."""
    with keyword_service(folder) as settings:
        yield settings


@pytest.fixture
def both(at: KeywordSettings, folder: Path) -> Iterator[tuple[Keywords, Keywords]]:
    """An empty index, over the service and in its folder."""
    name = f"t{time.monotonic_ns()}"
    with closing(KeywordService(at)) as service:
        served = service.of(name, name, missing)
        served.create()
        yield served, KeywordFolder(folder).of(name, name, missing)
        served.drop()


def entry(chunk_id: str, **properties: object) -> Entry:
    return Entry(chunk_id, f"every {chunk_id}", properties, f'{{"copy": "{chunk_id}"}}')


WHERES = [
    None,
    parse({"kind": "법"}, None),
    parse({"n >": 1, "flag !=": True}, {"tags contains": ["x", "y"]}),
    parse({"day >=": "2024-01-31"}, None),
    parse({"day !<": "2024-01-31T00:00:00+09:00", "kind ~": "*a*"}, None),
    parse({"n in": [1, 2.5, True, "1"]}, None),
    Where(
        every=(Condition("level", "==", 2), Condition("at", "<", datetime(2024, 1, 1, tzinfo=UTC)))
    ),
]


@pytest.mark.parametrize("where", WHERES)
def test_a_filter_arrives_as_it_was(where: Where | None) -> None:
    sent = json.loads(wire.dump({"where": wire.where_json(where)}))
    assert wire._where(sent) == where


def test_every_call_has_the_result_of_the_folder(both: tuple[Keywords, Keywords]) -> None:
    served, here = both
    served.upsert(
        [
            entry("a", kind="법", n=1, tags=["x", "z"], document_id="d"),
            entry("b", kind="law", n=2.5, flag=True, day="2024-02-01", document_id="d"),
            entry("c", document_id="e", kind='"quoted"\n'),
        ]
    )
    for where in (*WHERES[:-1], parse({"kind !=": "law"}, None)):
        assert served.search("every b", 5, where) == here.search("every b", 5, where)
        assert sorted(served.ids(where)) == sorted(here.ids(where))
        assert served.count(where) == here.count(where)
        for prop in ("kind", "n", "flag", "tags", "day"):
            assert served.groups(prop, where) == here.groups(prop, where)
        if where:
            assert served.ids_among(["a", "b", "q"], where) == here.ids_among(
                ["a", "b", "q"], where
            )
    known = ["a", "b", "c", "unknown"]
    assert served.terms(known) == here.terms(known) == {i: f"every {i}" for i in "abc"}
    assert served.copies(known) == here.copies(known)
    assert served.properties(known) == here.properties(known)
    assert sorted(served.values("kind")) == sorted(here.values("kind"))
    item = PropertyTerm("t", "document_id", "d")
    assert sorted(served.ids_having(item)) == ["a", "b"]
    served.delete(served.ids_having(item))
    served.compact()
    assert here.ids(None) == ["c"]
    served.delete(iter("c"))
    assert here.count(None) == 0


def test_one_at_a_time_deletes_or_compacts(
    both: tuple[Keywords, Keywords], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, _ = both
    monkeypatch.setattr("callslip.stores.fulltext.service.LOCK_SECONDS", 0.2)
    monkeypatch.setattr("callslip.stores.fulltext.service.RESERVED_SECONDS", 0.3)
    with served.undisturbed():
        time.sleep(0.5)  # longer than a reservation that is not renewed
        with pytest.raises(KeywordsDown), served.undisturbed():
            pass
    with served.undisturbed():
        pass


def test_a_reservation_outlives_the_service_and_ends_where_another_one_had_the_index(
    tmp_path: Path,
) -> None:
    def started() -> Reservable:
        return KeywordFolder(tmp_path).of("c", "c", missing)

    assert started().reserve("A", 60)
    assert not started().reserve("B", 60)
    assert started().reserve("A", 0, again=True)  # it is over at once
    assert started().reserve("A", 0, again=True)  # nobody else has had the index
    assert started().reserve("B", 60)
    assert not started().reserve("A", 60, again=True)
    started().release("A")
    assert not started().reserve("A", 60)
    started().release("B")
    assert not started().reserve("A", 60, again=True)
    assert started().reserve("A", 60)
    (reserved,) = tmp_path.glob("*.json")
    reserved.write_text("")  # as a power loss leaves it
    assert started().reserve("B", 60)
    by, until, seconds = json.loads(reserved.read_text())
    reserved.write_text(json.dumps([by, until + 1800, seconds]))  # the clock was set back
    assert started().reserve("A", 60)


def take(folder: Path, name: str) -> None:
    """Let another process reserve an index whose reservation is over."""
    (folder / f"{name}.reserved.json").unlink()
    assert KeywordFolder(folder).of(name, name, missing).reserve("another", 60)


def test_a_block_that_lost_its_reservation_fails_so_that_it_is_repeated(
    both: tuple[Keywords, Keywords], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, here = both
    name = here._folder.name  # type: ignore[attr-defined]
    with suppress(KeywordsDown), served.undisturbed() as check:
        check()
        take(folder, name)
        with pytest.raises(KeywordsDown, match="meanwhile"):
            check()
    KeywordFolder(folder).of(name, name, missing).release("another")
    monkeypatch.setattr("callslip.stores.fulltext.service.RESERVED_SECONDS", 0.01)
    with pytest.raises(KeywordsDown, match="meanwhile"), served.undisturbed():
        take(folder, name)
    KeywordFolder(folder).of(name, name, missing).release("another")
    with pytest.raises(StoreDown, match="Chroma"), served.undisturbed():
        raise StoreDown("Chroma does not answer.")


def test_a_compaction_that_lost_its_reservation_brings_no_deleted_row_back(
    beside: tuple[Store, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, name = beside
    upsert = Table.upsert

    def meanwhile(self: Table, rows: Sequence[Row]) -> None:
        upsert(self, rows)
        monkeypatch.setattr(Table, "upsert", upsert)
        take(folder, name)
        store._scopes.of(name).passages[""].delete(["b"])  # type: ignore[attr-defined]

    monkeypatch.setattr(Table, "upsert", meanwhile)
    with pytest.raises(KeywordsDown, match="meanwhile"):
        store.compact(name)
    assert store.chunk_ids(name)["vector"] == {"a"}
    KeywordFolder(folder).of(name, name, missing).release("another")
    store.compact(name)
    assert store.chunk_ids(name)["vector"] == {"a"}


def test_a_large_batch_is_sent_in_pieces(
    both: tuple[Keywords, Keywords], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, here = both
    monkeypatch.setattr("callslip.stores.fulltext.service.BYTES_PER_CALL", 100)
    served.upsert([entry(f"{n:02}") for n in range(12)])
    assert here.count(None) == 12
    served.delete(f"{n:02}" for n in range(12))
    assert here.count(None) == 0


def test_errors_of_an_index_have_their_classes(both: tuple[Keywords, Keywords]) -> None:
    served, _ = both
    long = Where(every=(Condition("kind", "~", "*".join("é" * 12 for _ in range(40))),))
    with pytest.raises(InvalidFilter):
        served.count(long)
    served.drop()
    served.drop()
    with pytest.raises(CollectionNotFound, match="no such index"):
        served.count(None)


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("/v1/indexes/a/count", b"[]", 400),
        ("/v1/indexes/a/count", b"no", 400),
        ("/v1/indexes/a/count", b"{}", 400),
        ("/v1/indexes/a/count", b'{"where": {"every": [["p", "%", 1]], "some": []}}', 400),
        ("/v1/indexes/a/search", b'{"terms": 1, "limit": 1, "where": null}', 400),
        ("/v1/indexes/a/count", b'{"where": null}', 404),
        ("/v1/indexes/..%2fa/count", b'{"where": null}', 404),
        ("/v1/indexes/../count", b'{"where": null}', 404),
        ("/v1/indexes/.a/create", b"{}", 400),
        ("/v1/indexes/A/create", b"{}", 400),
        ("/v1/indexes/a.b.c/create", b"{}", 400),
        ("/v1/indexes/a/_lock", b"{}", 404),
    ],
)
def test_a_call_that_is_none_is_a_problem(
    at: KeywordSettings, folder: Path, path: str, content: bytes, status: int
) -> None:
    headers = {"Authorization": f"Bearer {KEY.get_secret_value()}"}
    headers["Content-Type"] = "application/json"
    before = sorted(folder.iterdir())
    response = httpx.post(f"{at.url}{path}", content=content, headers=headers)
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/problem+json"
    assert sorted(folder.iterdir()) == before


def status_of_headers(at: KeywordSettings, call: str, length: int, header: str | None) -> int:
    """The status of a request of which only the headers are sent."""
    connection = HTTPConnection(str(at.url).removeprefix("http://"), timeout=10)
    with closing(connection):
        connection.putrequest("POST", f"/v1/indexes/a/{call}")
        connection.putheader("Content-Length", str(length))
        if header is not None:
            connection.putheader("Authorization", header)
        connection.endheaders()
        return connection.getresponse().status


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer wrong", f"Basic {KEY}"])
def test_without_the_key_only_its_life_is_told(at: KeywordSettings, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    assert httpx.get(f"{at.url}/healthz", headers=headers).status_code == 204
    assert httpx.get(f"{at.url}{wire.READY}", headers=headers).status_code == 401
    assert status_of_headers(at, "count", 10**6, header) == 401


def test_a_body_over_the_limit_is_refused_by_its_headers(at: KeywordSettings) -> None:
    header = f"Bearer {KEY.get_secret_value()}"
    assert status_of_headers(at, "upsert", LARGEST_MB * 10**6 + 1, header) == 413


def test_a_wrong_key_is_named_at_the_start_and_is_down_later(at: KeywordSettings) -> None:
    wrong = at.model_copy(update={"key": SecretStr("another-secret-of-16")})
    with pytest.raises(SettingsError, match=r"refuses keyword\.key"):
        check_key(wrong)
    with closing(KeywordService(wrong)) as service, pytest.raises(KeywordsDown, match="refuses"):
        service.of("a", "a", missing).count(None)
    check_key(at)
    check_key(NOWHERE)
    check_key(KeywordSettings())


def test_a_probe_writes_and_reads_back(at: KeywordSettings) -> None:
    with closing(KeywordService(at)) as service:
        service.probe()
        service.probe()
    with closing(KeywordService(NOWHERE)) as service, pytest.raises(KeywordsDown):
        service.probe()


def test_a_service_that_hangs_fails_at_once_after_its_share_of_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hung = NOWHERE.model_copy(update={"url": f"http://127.0.0.1:{silent.getsockname()[1]}"})
        with closing(KeywordService(hung)) as service:
            index = service.of("a", "a", missing)
            with until(time.time() + 0.6), pytest.raises(KeywordsDown, match="does not answer"):
                index.count(None)

            def at_once() -> bool:
                with until(time.time() + 5), pytest.raises(KeywordsDown) as raised:
                    index.count(None)
                return "has not answered for" in raised.value.detail

            assert waits_until(at_once, 10)
            begun = time.monotonic()
            assert all(at_once() for _ in range(20))
            assert time.monotonic() - begun < 0.5


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def beside(
    at: KeywordSettings, chroma_url: str, tmp_path: Path, faults: Faults
) -> Iterator[tuple[Store, str]]:
    """A Chroma store whose keyword service is behind a proxy, and a collection of two chunks."""
    name = f"t{time.monotonic_ns()}"
    with faulty_proxy(int(str(at.url).rpartition(":")[2]), faults) as port:
        keyword = at.model_copy(update={"url": f"http://127.0.0.1:{port}"})
        settings = with_service(chroma_settings(chroma_url, tmp_path), keyword)
        with closing(make_store(settings, "chroma")) as store:
            store.ensure_schema(CollectionSchema(name, VectorSpec(2)))
            store.batch_upsert_chunks(
                name, [chunk("a", properties={"kind": "law"}), chunk("b", level=2)]
            )
            yield store, name
            faults.begin()
            assert waits_until(lambda: _dropped(store, name), 30)


def _dropped(store: Store, name: str) -> bool:
    with suppress(StoreDown):
        store.drop_collection(name)
        return True
    return False


def away(faults: Faults) -> None:
    """From now on the proxy resets every request."""
    faults.begin("reset")
    faults.next = lambda: "reset"  # type: ignore[method-assign]


def test_while_the_service_is_away_the_vector_half_answers_with_filters_too(
    beside: tuple[Store, str], faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, name = beside
    before = vars(faults).copy()
    away(faults)
    assert set(ids(store.vector_query(name, EAST, 5))) == {"a", "b"}
    assert ids(store.vector_query(name, EAST, 5, parse({"kind": "law"}, None))) == ["a"]
    assert store.properties(name, ["a"], ["kind"]) == {"a": {"kind": "law"}}
    assert [c.chunk_id for c in store.get_chunks(name, ["b"])] == ["b"]
    monkeypatch.setattr(filtered, "MOST_READ", 1)
    with pytest.raises(KeywordsDown):
        store.vector_query(name, EAST, 1, parse({"kind": "none"}, None))
    for call in (
        store.ping,
        store.probe,
        lambda: store.keyword_query(name, "every", 5),
        lambda: store.batch_upsert_chunks(name, [chunk("c")]),
        lambda: store.chunk_ids(name, "doc"),
        lambda: store.delete_documents(name, ["doc"]),
    ):
        with pytest.raises(KeywordsDown):
            call()
    vars(faults).clear()
    vars(faults).update(before)
    assert waits_until(lambda: _answers(store, name), 10)


def _answers(store: Store, name: str) -> bool:
    with suppress(KeywordsDown):
        return set(ids(store.keyword_query(name, "every", 5))) <= {"a", "b"}
    return False


def test_a_lost_index_is_no_missing_collection_and_is_made_by_the_next_write(
    beside: tuple[Store, str], folder: Path
) -> None:
    store, name = beside
    lose(folder, name)
    with pytest.raises(KeywordsLost, match="is lost"):
        store.keyword_query(name, "every", 5)
    assert store.chunk_ids(name) == {"vector": {"a", "b"}, "keyword": set()}
    assert store.document_ids(name) == {"doc"}
    assert len(store.vector_query(name, EAST, 5, parse({"kind": "law"}, None))) == 1
    store.delete_chunks(name, ["b"])
    store.batch_upsert_chunks(name, [chunk("c")])
    assert store.chunk_ids(name) == {"vector": {"a", "c"}, "keyword": {"c"}}
    with pytest.raises(CollectionNotFound):
        store.keyword_query(f"{name}x", "every", 5)


def lose(folder: Path, name: str) -> None:
    """Remove the index as a lost disk does."""
    shutil.rmtree(folder / name)
