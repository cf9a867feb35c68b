"""Collections of another program's Chroma, attached: a real server behind a recording proxy."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attached_parts import assert_read_only
from chroma_server import TENANT, free_port
from genie_parts import DOCUMENTS, adapter_context_of, call
from recording_proxy import Recorded, recording_proxy
from search_parts import Embedder, made_of
from store_cases import ids

from callslip.compat.attaching import Embedders
from callslip.compat.chroma import attach
from callslip.compat.faq.compare import Question, compare
from callslip.config.sections.ranking import SearchSettings
from callslip.config.settings import ChromaSettings, Settings
from callslip.errors import (
    AddressNotAllowed,
    CallslipError,
    CollectionExists,
    CollectionNotFound,
    EmbedderDown,
    InvalidFilter,
    InvalidRequest,
    StoreDown,
    StoreNotAllowed,
    TableNotFound,
)
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.messages import SearchRequest, SearchResponse
from callslip.retrieval.run import search
from callslip.stores.blobs import Blobs
from callslip.stores.chroma.attached import AttachedChroma
from callslip.stores.chroma.attached import store as attached_store
from callslip.stores.chroma.attached.server import ChromaServer, check_address
from callslip.stores.chroma.attached.store import make_server
from callslip.stores.chroma.connection import Connection
from callslip.stores.ledger import Attachment, CollectionRecord, Ledger
from callslip.stores.properties.filters import matches, parse
from callslip.stores.records import CollectionSchema, VectorSpec, visible

pytest_plugins = ["store_fixtures"]

Rows = list[tuple[str, str | None, list[float], dict[str, Any] | None]]
"""Id, document, vector, metadata."""

FILMS: Rows = [
    (
        "storm",
        "A ship meets the wind.",
        [1, 0],
        {
            **{"title": "Storm", "year": 1999, "genre": "drama", "rating": 7.5, "seen": True},
            **{"tags": ["sea", "wind"], "numbers": [1, 2], "released": "1999-05-01", "lang": "en"},
            **{"when": "2024-01-01T10:00:00Z", "big": 2**60},
        },
    ),
    (
        "harbour",
        "A storm is told of.",
        [0.6, 0.8],
        {
            **{"title": "The harbour", "year": 2010, "genre": "comedy", "rating": 5},
            **{"seen": False, "tags": ["sea"], "released": "2010-05-01T00:00:00Z"},
        },
    ),
    ("desert", "Sand and 100% sun.", [0, 1], {"title": 7, "year": 2024.5, "genre": "dra_ma"}),
    ("nothing", None, [-1, 0], None),
]

READS = re.compile(
    r"GET /api/v2/(heartbeat|tenants/[^/]+/databases/[^/]+/collections/[^/]+(/count)?)"
    r"|POST /api/v2/tenants/[^/]+/databases/[^/]+/collections/[^/]+/(get|query)"
)
"""The requests of Chroma's API that read."""


@pytest.fixture(scope="module")
def proxy(chroma_url: str) -> Iterator[Recorded]:
    with recording_proxy(chroma_url) as recorded:
        yield recorded


@pytest.fixture(autouse=True)
def only_reads(proxy: Recorded) -> Iterator[None]:
    """Whatever a test does with an attached collection, nothing but reads reaches the server."""
    proxy.clear()
    yield
    written = [each for each in map(" ".join, proxy.requests) if not READS.fullmatch(each)]
    assert written == []


@pytest.fixture(scope="module")
def vendor(chroma_url: str) -> Iterator[Any]:
    """The vendor's client: the other program."""
    with closing(Connection(chroma_url, TENANT)) as connection:
        yield connection.client()


Make = Callable[..., str]


@pytest.fixture
def make(vendor: Any) -> Iterator[Make]:
    """Makes a collection with rows; its name."""
    made: set[str] = set()

    def run(rows: Rows = FILMS, space: str = "cosine", name: str = "") -> str:
        name = name or f"films.{time.monotonic_ns()}"
        there = vendor.create_collection(
            name, configuration={"hnsw": {"space": space}}, embedding_function=None
        )
        made.add(name)
        put(there, rows)
        return name

    yield run
    for name in made:
        vendor.delete_collection(name)


def put(collection: Any, rows: Rows) -> None:
    for id_, text, vector, metadata in rows:
        texts = {} if text is None else {"documents": [text]}
        collection.add(ids=[id_], embeddings=[vector], metadatas=[metadata], **texts)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as made:
        made.create()
        yield made


@pytest.fixture
def store(ledger: Ledger) -> Iterator[AttachedChroma]:
    with closing(AttachedChroma(ChromaSettings(), ledger)) as made:
        yield made


@pytest.fixture
def engine(ledger: Ledger, store: AttachedChroma) -> Resources:
    return made_of(ledger, store, SearchSettings())


def no_vectors(_: Any, texts: Sequence[str]) -> Any:
    """Embeds each text to the vector that the films have."""
    by_text = {text: vector for _, text, vector, _ in FILMS}
    return np.array([by_text[text] for text in texts], np.float32)


Attach = Callable[..., CollectionRecord]


@pytest.fixture
def attached(ledger: Ledger, proxy: Recorded) -> Attach:
    """Attaches a collection as `films`."""

    def run(
        collection: str,
        vectors: Any = "none",
        *,
        name: str = "films",
        url: str = proxy.url,
        settings: ChromaSettings | None = None,
        embed: Any = no_vectors,
        previous: Any = None,
        tenant: str = TENANT,
    ) -> CollectionRecord:
        at = Attachment("default_database", collection, vectors, url, tenant)
        embedder: Any = Embedder()
        with closing(make_server(settings or ChromaSettings(), url)) as server:
            return attach(
                name,
                at,
                ledger=ledger,
                server=server,
                embedders=Embedders(embedder, previous),
                embed=embed,
            )[0]

    return run


def ask(engine: Resources, **request: Any) -> SearchResponse:
    return search(engine, SearchRequest.model_validate({"collection": "films", **request}))


def found(response: SearchResponse) -> list[str]:
    return [hit.chunk_id for hit in response.hits]


def scores(response: SearchResponse) -> list[float]:
    return [hit.legs.vector.score for hit in response.hits if hit.legs.vector]


def test_a_question_is_searched_by_its_vector_and_a_hit_shows_the_row(
    make: Make, attached: Attach, engine: Resources
) -> None:
    record = attached(make(), "ours")
    assert (record.store, record.embedder) == ("attached-chroma", "tiny")
    assert record.schema.default == VectorSpec(2, "cosine", normalized=True)
    response = ask(engine, query="east", include_vector=True)
    assert found(response) == ["storm", "harbour", "desert", "nothing"]
    assert (response.alpha, response.left_out, response.partial) == (1, {}, False)
    assert scores(response) == pytest.approx([1, 0.6, 0, -1], abs=1e-6)
    hit, *_, last = response.hits
    assert (hit.text, hit.title, hit.document_id) == (FILMS[0][1], "Storm", "storm")
    assert (hit.level, hit.vector, hit.legs.keyword) == (2, [1, 0], None)
    assert hit.properties == FILMS[0][3]
    assert (last.text, last.title, last.properties) == ("", "", {})


def test_vectors_of_another_embedder_are_searched_by_a_vector_of_the_request(
    make: Make, attached: Attach, engine: Resources
) -> None:
    assert attached(make()).embedder == "unknown"
    response = ask(engine, query_embedding=[0, 2], top=2)
    assert found(response) == ["desert", "harbour"]
    assert scores(response) == pytest.approx([1, 0.8], abs=1e-6)
    assert found(ask(engine, query="storm", query_embedding=[1, 0], top=1)) == ["storm"]
    with pytest.raises(InvalidRequest, match="cannot be searched by words"):
        ask(engine, query="storm")
    with pytest.raises(InvalidRequest, match="3 numbers"):
        ask(engine, query_embedding=[1, 0, 0])


def test_the_previous_embedder_of_the_settings_may_have_made_the_vectors(
    make: Make, attached: Attach, engine: Resources
) -> None:
    previous: Any = Embedder()
    previous.model = "older"
    name = make()
    with pytest.raises(InvalidRequest, match="no previous embedder"):
        attached(name, "previous")
    assert attached(name, "previous", previous=previous).embedder == "older"
    with pytest.raises(InvalidRequest, match="cannot be searched by words"):
        ask(engine, query="east")
    engine.previous = previous
    assert found(ask(engine, query="east", top=1)) == ["storm"]


@pytest.mark.parametrize(
    ("space", "metric", "expected"),
    [("l2", "l2-squared", [-5, -9.8]), ("ip", "dot", [3, 0.6]), ("cosine", "cosine", [1, 0.6])],
)
def test_the_metric_is_that_of_the_collections_configuration(
    make: Make, attached: Attach, engine: Resources, space: str, metric: str, expected: list[float]
) -> None:
    rows: Rows = [("far", "x", [3, 0], None), ("near", "y", [0.6, 0.8], None)]
    assert attached(make(rows, space)).schema.default.metric == metric
    response = ask(engine, query_embedding=[1, 3] if space == "l2" else [1, 0])
    by_id = dict(zip(found(response), scores(response), strict=True))
    if space == "l2":
        assert found(response) == ["near", "far"]
        expected = [-(2**2 + 3**2), -(0.4**2 + 2.2**2)]
    assert [by_id["far"], by_id["near"]] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("space", ["l2", "ip"])
def test_unit_vectors_of_our_embedder_have_cosines_in_every_space(
    make: Make, attached: Attach, engine: Resources, space: str
) -> None:
    name = make(space=space)
    assert attached(name, "ours").schema.default.metric == "cosine"
    assert scores(ask(engine, query="east")) == pytest.approx([1, 0.6, 0, -1], abs=1e-6)
    assert scores(ask(engine, query_embedding=[3, 0], top=1)) == pytest.approx([1], abs=1e-6)


def test_another_metric_is_computed_over_all_rows(
    make: Make, attached: Attach, engine: Resources
) -> None:
    attached(make(space="l2"))
    response = ask(engine, query_embedding=[2, 0], method="cosine")
    assert scores(response) == pytest.approx([1, 0.6, 0, -1], abs=1e-6)


FILTERS: list[dict[str, Any]] = [
    *({"year": 1999}, {"year >": 2000}, {"year >=": 1999.5}, {"year <": 2010.5}, {"year": 2024.5}),
    *({"year !=": 1999}, {"year in": [1999, 2024.5]}, {"year not-in": [1999]}, {"year": "1999"}),
    *({"year !>": 2000}, {"rating": 7.5}, {"rating <=": 5}, {"seen": True}, {"seen !=": True}),
    *({"seen": 1}, {"genre": "drama"}, {"genre ~": "dra*"}, {"genre ~": "dra_ma"}, {"big": 2**60}),
    *({"big >": 5}, {"big <": 2**61}, {"year <=": 1999}, {"year >": -1e300}, {"year >=": 1999}),
    *({"genre !=": "drama"}, {"genre in": ["drama", 3, True]}, {"tags @": "sea"}, {"tags": "sea"}),
    *({"tags contains": ["wind", "x"]}, {"tags !=": "sea"}, {"numbers @": 2}, {"numbers @": 1.5}),
    *({"released >": "2000-01-01"}, {"released": "2010-05-01"}, {"released <": "2000-01-01"}),
    *({"released !=": "2010-05-01"}, {"released ~": "1999*"}, {"genre >": "2000-01-01"}),
    *({"title": "Storm"}, {"title": ""}, {"title !=": "Storm"}, {"title": 7}, {"lang": "en"}),
    *({"lang": ""}, {"lang !=": ""}, {"section": ""}, {"document_id": "desert"}),
    *({"level": 2}, {"level": 0}, {"level !=": 0}, {"ordinal": 0}, {"parent_id": ""}),
    *({"when": "2024-01-01T10:00:00Z"}, {"when >=": "2024-01-01"}, {"genre": "2024-01-01"}),
    *({"tags @": "2024-01-01"}, {"genre in": ["2024-01-01", "drama"]}, {"nobody": 1}),
]


@pytest.mark.long
def test_filters_mean_of_a_row_what_they_mean_of_a_hit(
    make: Make, attached: Attach, store: AttachedChroma
) -> None:
    attached(make())
    rows = store.get_chunks("films", store.find_ids("films"))
    assert len(rows) == len(FILMS)
    for filter_ in FILTERS:
        for where in (parse(filter_, None), parse(None, {**filter_, "year <": 0})):
            assert where is not None
            expected = sorted(c.chunk_id for c in rows if matches(where, visible(c)))
            assert store.find_ids("films", where) == expected, filter_
            assert store.count("films", where) == len(expected)
            near = store.vector_query("films", np.array([1, 0], np.float32), 9, where)
            assert sorted(ids(near)) == expected, filter_
    assert store.count("films") == len(FILMS)
    assert dict(store.aggregate_group_by("films", "tags")) == {"sea": 2, "wind": 1}
    assert dict(store.aggregate_group_by("films", "seen")) == {True: 1, False: 1}
    assert store.property_names("films") >= {"title", "year", "tags", "big"}


def test_a_filter_of_a_request_is_checked_against_the_names_of_the_metadata(
    make: Make, attached: Attach, engine: Resources
) -> None:
    attached(make(), "ours")
    assert found(ask(engine, query="east", having_all={"genre ~": "dra*"})) == ["storm", "desert"]
    assert found(ask(engine, query="north", having_all={"year >": 2000}, top=1)) == ["desert"]
    with pytest.raises(InvalidFilter, match="nobody"):
        ask(engine, query="east", having_all={"nobody": 1})


def test_more_rows_are_read_until_enough_pass_and_then_no_more(
    make: Make,
    attached: Attach,
    store: AttachedChroma,
    vendor: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = make([])
    angles = np.linspace(0, 1.5, 3000)
    vendor.get_collection(name, embedding_function=None).add(
        ids=[f"{n:04}" for n in range(3000)],
        embeddings=np.stack([np.cos(angles), np.sin(angles)], axis=1),
        metadatas=[{"code": f"c{n}"} for n in range(3000)],
    )
    attached(name)
    east = np.array([1, 0], np.float32)
    rare = parse({"code ~": "c2*9"}, None)
    expected = [f"{n:04}" for n in range(3000) if re.fullmatch("2.*9", str(n))]
    assert ids(store.vector_query("films", east, 10, rare)) == expected[:10]
    assert len(store.vector_query("films", east, 500, rare)) == len(expected)
    assert store.find_ids("films", rare) == expected
    monkeypatch.setattr(attached_store, "MOST_READ", 1000)
    with pytest.raises(InvalidFilter, match="1,000 nearest rows"):
        store.vector_query("films", east, 10, parse({"code ~": "c29*9"}, None))
    exact = parse({"code": "c2999"}, None)
    assert ids(store.vector_query("films", east, 10, exact)) == ["2999"]


def test_programs_over_it_search_it_and_write_nothing(
    make: Make,
    attached: Attach,
    ledger: Ledger,
    store: AttachedChroma,
    vendor: Any,
    tmp_path: Path,
) -> None:
    name = make()
    attached(name)
    before = vendor.get_collection(name, embedding_function=None).get(include=["embeddings"])
    context, _ = adapter_context_of(ledger, store, Blobs(str(tmp_path / "blobs")))
    where = {"collection": "films", "having_all": {"genre": "drama"}}
    (one,) = call(context, "VectorSimilaritySearch", {"query_embedding": [0, 1]}, **where)
    assert [c["content"] for c in one["chunks"]] == ["A ship meets the wind."]
    with pytest.raises(InvalidRequest, match="words"):
        compare(context, Question(query="0 what", top_k=2, threshold=0), ["films"])
    assert_read_only(store, ledger, "films")
    with pytest.raises(ValueError, match="only read"):
        call(context, "Persist", {"collection_name": "films", "document": DOCUMENTS})
    call(context, "DeleteByFilter", {"collection_name": "films", "having_all": {"level": 2}})
    store.drop_collection("films")
    assert store.collections() == []
    after = vendor.get_collection(name, embedding_function=None).get(include=["embeddings"])
    assert after["ids"] == before["ids"]
    assert np.array_equal(after["embeddings"], before["embeddings"])


def test_vectors_of_another_model_are_not_ours(make: Make, attached: Attach) -> None:
    name = make()
    turned = {text: [-vector[1], vector[0]] for _, text, vector, _ in FILMS}
    with pytest.raises(InvalidRequest, match=r"tiny did not make .* cosine of 0\.00"):
        attached(name, "ours", embed=lambda _, texts: np.array([turned[t] for t in texts]))
    rows: Rows = [("a", "b", [3, 0], None)]
    with pytest.raises(InvalidRequest, match="length 1"):
        attached(make(rows, "l2"), "ours")
    with pytest.raises(InvalidRequest, match="3 dimensions, those of tiny 2"):
        attached(make([("a", "b", [1, 0, 0], None)]), "ours")
    with pytest.raises(InvalidRequest, match="no rows"):
        attached(make([]))

    def down(*_: object) -> Any:
        raise EmbedderDown("away")

    with pytest.raises(EmbedderDown):
        attached(name, "ours", embed=down)
    assert attached(make([("a", None, [1, 0], None)]), "ours", embed=down).embedder == "tiny"


def test_another_collection_of_that_name_is_searched_or_its_dimension_is_named(
    make: Make, attached: Attach, engine: Resources, vendor: Any
) -> None:
    name = make()
    attached(name)
    assert found(ask(engine, query_embedding=[1, 0], top=1)) == ["storm"]
    vendor.delete_collection(name)
    with pytest.raises(TableNotFound, match=name):
        ask(engine, query_embedding=[1, 0])
    make([("new", "x", [1, 0], None)], name=name)
    assert found(ask(engine, query_embedding=[1, 0])) == ["new"]
    vendor.delete_collection(name)
    make([("a", "b", [1, 0, 0], None)], name=name)
    with pytest.raises(InvalidRequest, match="dimension"):
        ask(engine, query_embedding=[1, 0])


def test_the_same_call_again_is_the_same_at_another_server_it_moves_else_a_conflict(
    make: Make, attached: Attach, ledger: Ledger, chroma_url: str, engine: Resources
) -> None:
    name = make()
    first = attached(name)
    assert attached(name) == first == ledger.collections.get("films")
    assert TENANT not in repr(first)
    moved = attached(name, url=chroma_url)
    assert moved == ledger.collections.get("films")
    assert moved.attachment is not None
    assert (moved.attachment.server, moved.created_at) == (chroma_url, first.created_at)
    assert found(ask(engine, query_embedding=[1, 0], top=1)) == ["storm"]
    with pytest.raises(CollectionExists):
        attached(name, "ours")
    with pytest.raises(CollectionExists):
        attached(make())
    ledger.collections.create(
        CollectionSchema("made", VectorSpec(2)), store="chroma", embedder="tiny", analyzer="1"
    )
    with pytest.raises(CollectionExists):
        attached(name, name="made")


def test_what_is_not_there_or_no_chroma_is_named(
    make: Make, attached: Attach, engine: Resources, proxy: Recorded
) -> None:
    name = make()
    with pytest.raises(TableNotFound, match=r"default_database/nobody"):
        attached("nobody")
    for strange in ("../../x", "a b", "%2e", "\x00", "é", "a?b#c"):
        with pytest.raises((TableNotFound, InvalidRequest)):
            attached(strange)
    nobody = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(StoreDown, match=nobody):
        attached(name, url=nobody)
    attached(name)
    for status, body in (
        *((200, b"[]"), (200, b"{}"), (200, b"<html>"), (200, b"\xff"), (200, b"null")),
        *((200, b'{"ids": 7, "distances": 7}'), (200, b'{"ids": [["a"]], "distances": [[]]}')),
        *((404, b"<html>"), (302, b""), (500, b""), (503, b"{}"), (429, b"{}"), (200, b"7")),
    ):
        proxy.answer = status, body
        with pytest.raises(StoreDown):
            attached("another")
        with pytest.raises(StoreDown):
            ask(engine, query_embedding=[1, 0])
    proxy.clear()


def test_a_key_is_sent_to_its_own_server_alone(
    make: Make, attached: Attach, ledger: Ledger, proxy: Recorded
) -> None:
    name = make()
    proxy.key = "s3cret"
    with pytest.raises(StoreNotAllowed, match="key") as refused:
        attached(name)
    assert "chroma.attached_keys" in refused.value.advice
    elsewhere = ChromaSettings.model_validate({"attached_keys": "https://a.example=s3cret"})
    with pytest.raises(StoreNotAllowed):
        attached(name, settings=elsewhere)
    own = ChromaSettings.model_validate({"attached_keys": f"http://b=x {proxy.url}/=s3cret"})
    attached(name, settings=own)
    with closing(AttachedChroma(own, ledger)) as store:
        assert store.count("films") == len(FILMS)
    assert "s3cret" not in repr(own)


def test_an_address_must_be_allowed(make: Make, attached: Attach) -> None:
    name = make()
    for url in ("http://10.0.0.1:8000", "http://169.254.169.254", "http://[::ffff:10.0.0.1]"):
        with pytest.raises(AddressNotAllowed):
            attached(name, url=url)
    with pytest.raises(AddressNotAllowed) as refused:
        attached(name, settings=ChromaSettings(allow_networks=None))
    assert "chroma.allow_networks" in refused.value.advice


def test_a_search_does_not_show_an_address_that_is_no_longer_allowed() -> None:
    url = "http://10.1.2.3:8000"
    at = Attachment("default_database", "films", "ours", url, "default_tenant")
    server = ChromaServer(url, (), None, named=False)
    with closing(server), pytest.raises(StoreDown) as refused:
        server.describe(at)
    assert "10.1.2.3" not in f"{refused.value.detail} {refused.value.advice}"


@pytest.mark.parametrize(
    "url",
    [
        *("", "127.0.0.1:8000", "ftp://a", "http://", "http://a:0", "http://a:x", "http://u:p@a"),
        *("http://a?b=c", "http://a#b", "file:///etc", "http://[", "http://a:99999"),
        *("https://xn--/", "https://xn--a", "https://xn--\xfc/", "https://a\u200d.org/"),
        *("https://\uff0eorg/", "https://\u0301.org/", "https://[v1.x]/"),
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match=r"url.*address"):
        check_address(url)


def test_a_server_that_is_away_is_down_and_searched_again_when_it_is_back(
    make: Make, attached: Attach, engine: Resources, proxy: Recorded, chroma_url: str
) -> None:
    name = make()
    with recording_proxy(chroma_url) as other:
        attached(name, url=other.url)
        assert found(ask(engine, query_embedding=[1, 0], top=1)) == ["storm"]
    with pytest.raises(StoreDown):
        ask(engine, query_embedding=[1, 0])
    attached(name)
    assert found(ask(engine, query_embedding=[1, 0], top=1)) == ["storm"]


@pytest.mark.parametrize("method", ["terms", "get_documents", "get_chunks"])
def test_a_collection_that_is_not_there_is_named(store: AttachedChroma, method: str) -> None:
    with pytest.raises(CollectionNotFound, match="nowhere"):
        getattr(store, method)("nowhere", ["a"])


def test_settings_name_keys_as_pairs() -> None:
    with pytest.raises(ValueError, match="URL=KEY"):
        Settings.model_validate({"chroma": {"attached_keys": "secret"}})
    assert issubclass(AddressNotAllowed, CallslipError)
