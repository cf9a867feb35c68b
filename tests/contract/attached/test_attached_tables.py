"""Tables that others made, attached as collections: on the fake and on a real server."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attached_parts import assert_read_only
from crate_page import statement
from crate_server import table_of
from cratedb_sqlparse import sqlparse
from genie_parts import DOCUMENTS, adapter_context_of, call
from search_parts import Embedder, made_of
from store_cases import chunk, ids

from callslip.compat.attaching import Embedders
from callslip.compat.crate import attach, table_named
from callslip.config.sections.ranking import SearchSettings
from callslip.config.settings import Settings
from callslip.errors import (
    CollectionExists,
    CollectionNotFound,
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
from callslip.stores.crate.attached import AttachedStore
from callslip.stores.crate.connection import Connection, RelationMissing, Sql
from callslip.stores.crate.store import CrateStore
from callslip.stores.ledger import Attachment, CollectionRecord, Ledger
from callslip.stores.properties.filters import matches, parse
from callslip.stores.records import CollectionSchema, Value, VectorSpec, visible
from callslip.stores.registry import make_store

pytest_plugins = ["store_fixtures", "crate_fixtures"]

Films = list[tuple[str, str, list[float], dict[str, Any]]]
"""Title, content, vector, metadata."""

FILMS: Films = [
    (
        "Storm",
        "A ship meets the wind.",
        [1, 0],
        {
            **{"year": 1999, "genre": "drama", "rating": 7.5, "seen": True, "id's": "s'1"},
            **{"tags": ["sea", "wind"], "numbers": [1, 2], "released": "1999-05-01"},
            **{"crew": {"director": "Ann", "size": 12}, "when": "2024-01-01T10:00:00Z"},
        },
    ),
    (
        "The harbour",
        "A storm is told of.",
        [0.6, 0.8],
        {
            **{"year": 2010, "genre": "comedy", "rating": 5, "seen": False, "tags": ["sea"]},
            **{"released": "2010-05-01T00:00:00Z", "crew": {"director": "Bob", "size": 3}},
        },
    ),
    ("Desert", "Sand and 100% sun.", [0, 1], {"year": 2024, "genre": "dra_ma", "tags": []}),
    ("Nothing", "Silence.", [-1, 0], {}),
]


def make_table(raw: Connection, table: str, films: Films = FILMS, *, dimension: int = 2) -> None:
    """The documented table with these rows, made by no hand of Callslip's."""
    made = statement("The table", table).replace("FLOAT_VECTOR(384)", f"FLOAT_VECTOR({dimension})")
    raw.run(Sql(made))
    names = '("hierarchy", "title_fs", "content_fs", "content_pretty", "ref", "xs", "metadata")'
    for title, content, xs, metadata in films:
        values = (f"/films/{title}", title, content, f"<b>{content}</b>", f"#{title}", xs, metadata)
        raw.run(Sql(f"INSERT INTO {table} {names} VALUES (?, ?, ?, ?, ?, ?, ?)", values))
    raw.run(Sql(f"REFRESH TABLE {table}"))


@pytest.fixture
def table(server: Settings, raw: Connection) -> Iterator[str]:
    """The name of a table, in SQL, that is dropped after the test."""
    name = f'"{server.crate.schema_name}"."Films {time.monotonic_ns()}"'.replace(" ", "-")
    yield name
    raw.run(Sql(f"DROP TABLE IF EXISTS {name}"))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as made:
        made.create()
        yield made


@pytest.fixture
def store(server: Settings, tmp_path: Path, ledger: Ledger) -> Iterator[AttachedStore]:
    where = {"url": f"sqlite:///{tmp_path / 'ledger.db'}"}
    settings = Settings.model_validate({"crate": server.crate, "ledger": where})
    with closing(make_store(settings, "attached")) as made:
        assert isinstance(made, AttachedStore)
        yield made


Attach = Callable[..., CollectionRecord]


@pytest.fixture
def attached(ledger: Ledger, raw: Connection, table: str) -> Attach:
    """Attaches the table as `films`."""

    def run(vectors: Any = "none", name: str = "films", table: str = table) -> CollectionRecord:
        embedder: Any = Embedder()
        embedders = Embedders(embedder, None)
        return attach(name, table, vectors, ledger=ledger, connection=raw, embedders=embedders)[0]

    return run


@pytest.fixture
def engine(ledger: Ledger, store: AttachedStore) -> Resources:
    return made_of(ledger, store, SearchSettings())


def ask(engine: Resources, **request: Any) -> SearchResponse:
    return search(engine, SearchRequest.model_validate({"collection": "films", **request}))


def titles(response: SearchResponse) -> list[str]:
    return [hit.title for hit in response.hits]


def test_words_of_a_question_are_searched_as_they_are_and_a_hit_shows_the_row(
    raw: Connection, table: str, attached: Attach, engine: Resources
) -> None:
    make_table(raw, table)
    record = attached()
    assert (record.store, record.embedder, record.schema.default) == (
        *("attached", "unknown"),
        VectorSpec(2, "cosine"),
    )
    found = ask(engine, query="STORM!")
    assert titles(found) == ["Storm", "The harbour"]
    assert found.alpha == 0
    assert "embedder" in found.left_out["vector"]
    assert found.partial
    hit = found.hits[0]
    assert (hit.text, hit.section, hit.level) == ("A ship meets the wind.", "/films/Storm", 2)
    assert hit.chunk_id == hit.document_id
    expected = {
        **{"hierarchy": "/films/Storm", "ref": "#Storm", "content_pretty": f"<b>{hit.text}</b>"},
        **{k: v for k, v in FILMS[0][3].items() if k != "crew"},
        **{"crew.director": "Ann", "crew.size": 12},
    }
    assert hit.properties == expected
    assert (hit.legs.vector, hit.legs.keyword and hit.legs.keyword.rank) == (None, 1)
    assert titles(ask(engine, query="nobody says this")) == []


def test_a_vector_of_the_request_is_searched_whoever_made_the_table(
    raw: Connection, table: str, attached: Attach, engine: Resources
) -> None:
    make_table(raw, table)
    attached()
    found = ask(engine, query_embedding=[1, 0], top=2)
    assert titles(found) == ["Storm", "The harbour"]
    assert [h.legs.vector and h.legs.vector.score for h in found.hits] == pytest.approx([1, 0.6])
    assert (found.left_out, found.partial) == ({}, False)
    both = ask(engine, query="sand", query_embedding=[1, 0], fusion="native", include_vector=True)
    assert {h.title for h in both.hits} == {f[0] for f in FILMS}
    (desert,) = (h for h in both.hits if h.title == "Desert")
    assert desert.score == pytest.approx(round(1 / 61 + 1 / 63, 6), abs=2e-6)
    assert desert.vector == [0, 1]
    with pytest.raises(InvalidRequest, match="3 numbers"):
        ask(engine, query_embedding=[1, 0, 0])


def test_hits_explain_themselves_and_are_told_apart(
    raw: Connection, table: str, attached: Attach, engine: Resources
) -> None:
    make_table(raw, table)
    attached()
    request: dict[str, Any] = {"query": "storm", "query_embedding": [1, 0], "top": 3}
    found = ask(engine, **request, explain=True, ranking={"mmr_lambda": 0.5, "proximity": 1})
    assert titles(found)[0] == "Storm"
    for hit in found.hits:
        assert hit.reasons is not None
        assert sum(hit.reasons.parts.values()) == pytest.approx(hit.score, abs=1e-5)
    assert set(engine.ledger.collections.property_names("films")) == set()


def test_the_invokers_of_genie_flow_search_it_by_a_vector_and_write_nothing(
    raw: Connection,
    table: str,
    attached: Attach,
    ledger: Ledger,
    store: AttachedStore,
    tmp_path: Path,
) -> None:
    make_table(raw, table)
    attached()
    context, _ = adapter_context_of(ledger, store, Blobs(str(tmp_path / "blobs")))
    where = {"collection": "films", "having_all": {"genre": "drama"}}
    (found,) = call(context, "VectorSimilaritySearch", {"query_embedding": [0, 1]}, **where)
    assert [c["content"] for c in found["chunks"]] == ["A ship meets the wind."]
    with pytest.raises(ValueError, match="embedder"):
        call(context, "SimilaritySearch", "90", collection="films")
    with pytest.raises(ValueError, match="only read"):
        call(context, "Persist", {"collection_name": "films", "document": DOCUMENTS})
    counts = call(
        context, "DeleteByFilter", {"collection_name": "films", "having_all": {"level": 2}}
    )
    assert counts.get("matches", 0) == 0
    assert len(store.find_ids("films")) == len(FILMS)


def test_vectors_that_are_said_to_be_ours_are_searched_by_the_question(
    raw: Connection, table: str, attached: Attach, engine: Resources
) -> None:
    make_table(raw, table)
    record = attached("ours")
    assert (record.embedder, record.schema.default.normalized) == ("tiny", True)
    found = ask(engine, query="north")
    assert found.left_out == {}
    assert titles(found)[0] == "Desert"
    assert found.alpha > 0


def test_vectors_of_other_lengths_are_compared_by_their_distance(
    raw: Connection, table: str, attached: Attach, engine: Resources
) -> None:
    make_table(raw, table, [("far", "x", [3, 0], {}), ("near", "x", [0, 1], {})])
    assert attached().schema.default.metric == "l2-squared"
    found = ask(engine, query_embedding=[1, 0])
    assert titles(found) == ["near", "far"]
    assert [h.legs.vector and h.legs.vector.score for h in found.hits] == pytest.approx([-2, -4])
    by_cosine = ask(engine, query_embedding=[1, 0], method="cosine")
    assert titles(by_cosine) == ["far", "near"]


FILTERS: list[dict[str, Any]] = [
    *({"year": 1999}, {"year >": 2000}, {"year >=": 1999.5}, {"year <": 2010.5}, {"year": 2010.5}),
    *({"year !=": 1999}, {"year in": [1999, 2024, 1.5]}, {"year not-in": [1999]}, {"year": "1999"}),
    *({"year !>": 2000}, {"rating": 7.5}, {"rating <=": 5}, {"seen": True}, {"seen !=": True}),
    *(
        {"seen": 1},
        {"genre": "drama"},
        {"genre ~": "dra*"},
        {"genre ~": "dra_ma"},
        {"year ~": "1*"},
    ),
    *({"genre !=": "drama"}, {"genre in": ["drama", 3, True]}, {"tags @": "sea"}, {"tags": "sea"}),
    *({"tags contains": ["wind", "x"]}, {"tags !=": "sea"}, {"numbers @": 2}, {"numbers @": 1.5}),
    *({"released >": "2000-01-01"}, {"released": "2010-05-01"}, {"released <": "2000-01-01"}),
    *({"released !=": "2010-05-01"}, {"released ~": "1999*"}, {"genre >": "2000-01-01"}),
    *({"crew.director": "Ann"}, {"crew.size >": 5}, {"id's": "s'1"}, {"title": "Storm"}),
    *({"ref": "#Desert"}, {"hierarchy ~": "/films/*"}, {"section ~": "*s*t*"}, {"lang": ""}),
    *({"level": 2}, {"level": 0}, {"level !=": 0}, {"ordinal": 0}, {"parent_id": ""}),
    *({"when": "2024-01-01T10:00:00Z"}, {"when >=": "2024-01-01"}, {"genre": "2024-01-01"}),
]


def test_filters_mean_of_a_row_what_they_mean_of_a_hit(
    raw: Connection, table: str, attached: Attach, store: AttachedStore
) -> None:
    make_table(raw, table)
    attached()
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
    one = parse({"document_id": rows[0].chunk_id}, None)
    assert store.find_ids("films", one) == [rows[0].chunk_id]
    assert dict(store.aggregate_group_by("films", "tags")) == {"sea": 2, "wind": 1}
    assert dict(store.aggregate_group_by("films", "seen")) == {True: 1, False: 1}
    assert store.aggregate_group_by("films", "nobody") == []
    assert store.count_documents("films", "tags", ["sea", "wind", "nobody"]) == [2, 1, 0]


def test_times_of_a_typed_column_are_read_as_dates(
    raw: Connection, table: str, attached: Attach, engine: Resources
) -> None:
    make_table(raw, table, [])
    raw.run(Sql(f"ALTER TABLE {table} ADD COLUMN \"metadata\"['at'] TIMESTAMP WITH TIME ZONE"))
    names = f'INSERT INTO {table} ("title_fs", "content_fs", "xs", "metadata") VALUES (?, ?, ?, ?)'
    for day in (1, 2):
        raw.run(
            Sql(names, (f"day {day}", "x", [1, 0], {"at": 1_704_067_200_000 + day * 86_400_000}))
        )
    raw.run(Sql(f"REFRESH TABLE {table}"))
    attached()
    found = ask(engine, query="day", having_all={"at >=": "2024-01-03"})
    assert [(h.title, h.properties["at"]) for h in found.hits] == [
        ("day 2", "2024-01-03T00:00:00Z")
    ]
    assert titles(ask(engine, query="day", having_all={"at": 1_704_153_600_000})) == []


def test_a_property_that_came_later_is_known_and_an_unknown_one_is_named(
    raw: Connection, table: str, attached: Attach, engine: Resources
) -> None:
    make_table(raw, table)
    attached()
    with pytest.raises(InvalidFilter, match="budget") as caught:
        ask(engine, query="storm", having_all={"budget": 5})
    assert ask(engine, query="storm", having_all={"genre": "drama"}).hits
    with pytest.raises(InvalidFilter, match="genr'") as caught:
        ask(engine, query="storm", having_all={"genr": "drama"})
    assert "genre" in caught.value.advice
    values = ("New", "storm", [1, 0], {"budget": 5})
    names = '("title_fs", "content_fs", "xs", "metadata")'
    raw.run(Sql(f"INSERT INTO {table} {names} VALUES (?, ?, ?, ?)", values))
    raw.run(Sql(f"REFRESH TABLE {table}"))
    assert titles(ask(engine, query="storm", having_all={"budget": 5})) == ["New"]
    with pytest.raises(InvalidFilter, match="of the type object"):
        ask(engine, query="storm", having_all={"crew": "Ann"})


def test_levels_and_dates_of_force_are_as_for_any_passage(
    raw: Connection, table: str, attached: Attach, engine: Resources
) -> None:
    films = [("old", "storm", [1, 0], {"valid_to": "2020-01-01"}), ("new", "storm", [1, 0], {})]
    make_table(raw, table, films)
    attached()
    assert titles(ask(engine, query="storm", as_of="2024-01-01")) == ["new"]
    assert len(ask(engine, query="storm", as_of="any", operation_level=-1).hits) == 2
    assert ask(engine, query="storm", operation_level=0).hits == []
    found = ask(engine, query="storm", as_of="any", parent_strategy="include", operation_level=2)
    assert len(found.hits) == 2


def test_what_is_wrong_with_a_table_is_said_at_once(
    raw: Connection, table: str, attached: Attach, ledger: Ledger
) -> None:
    raw.run(
        Sql(
            f'CREATE TABLE {table} ("title_fs" TEXT, "content_fs" BIGINT,'
            ' "ref" ARRAY(TEXT), "xs" FLOAT_VECTOR(2), "metadata" TEXT)'
        )
    )
    with pytest.raises(InvalidRequest) as caught:
        attached()
    for part in (
        *("column hierarchy (TEXT) is missing", "column content_pretty (TEXT) is missing"),
        *("content_fs is BIGINT, not TEXT", "ref is TEXT_ARRAY, not TEXT"),
        *("metadata is TEXT, not OBJECT", "title_fs has no full-text index"),
    ):
        assert part in caught.value.detail
    assert "xs" not in caught.value.detail
    assert ledger.collections.all() == []


def test_a_table_that_is_none_is_named(
    raw: Connection, server: Settings, table: str, attached: Attach, engine: Resources
) -> None:
    with pytest.raises(TableNotFound, match="Films"):
        attached()
    with pytest.raises(TableNotFound, match=r"Table doc\.nobody"):
        attached(table="Nobody")
    make_table(raw, table)
    view = table.replace("Films", "View")
    raw.run(Sql(f"CREATE VIEW {view} AS SELECT * FROM {table}"))
    with pytest.raises(InvalidRequest, match="is a view"):
        attached(table=view)
    raw.run(Sql(f"DROP VIEW {view}"))
    attached()
    raw.run(Sql(f"DROP TABLE {table}"))
    with pytest.raises(TableNotFound, match="Films"):
        ask(engine, query="storm")


@pytest.mark.parametrize(
    "name", ["", " ", "a.b.c", 'a"b', "a b", "a;drop", "doc.", ".a", '"', '""', "a'b", "x" * 300]
)
def test_a_name_that_is_none_is_refused(name: str, attached: Attach) -> None:
    with pytest.raises(InvalidRequest):
        attached(table=name)


def test_names_are_read_as_sql_reads_them() -> None:
    assert table_named("Search") == ("doc", "search")
    assert table_named(" Callslip.films-0a1b ") == ("callslip", "films-0a1b")
    assert table_named('"My ""x"" s"."T.b"') == ('My "x" s', "T.b")
    assert Attachment('a"b', "c", "none").table == '"a""b"."c"'


def test_vectors_are_not_ours_by_their_dimension_or_length(
    raw: Connection, table: str, attached: Attach
) -> None:
    make_table(raw, table, [("a", "b", [3, 0], {})])
    with pytest.raises(InvalidRequest, match="length 1"):
        attached("ours")
    raw.run(Sql(f"DROP TABLE {table}"))
    make_table(raw, table, [], dimension=3)
    with pytest.raises(InvalidRequest, match="3 dimensions, those of tiny 2"):
        attached("ours")
    assert attached().schema.default == VectorSpec(3, "l2-squared")


def test_the_same_call_again_is_the_same_and_another_one_a_conflict(
    raw: Connection, table: str, attached: Attach, ledger: Ledger
) -> None:
    make_table(raw, table)
    first = attached()
    assert attached() == first == ledger.collections.get("films")
    assert attached(name="again").attachment == first.attachment
    with pytest.raises(CollectionExists):
        attached("ours")
    schema = CollectionSchema("made", VectorSpec(2))
    ledger.collections.create(schema, store="chroma", embedder="tiny", analyzer="1")
    with pytest.raises(CollectionExists):
        attached(name="made")
    with pytest.raises(CollectionExists, match="attached"):
        ledger.collections.create(first.schema, store="chroma", embedder="tiny", analyzer="1")


def test_nothing_is_ever_written_to_it(
    raw: Connection, table: str, attached: Attach, ledger: Ledger, store: AttachedStore
) -> None:
    make_table(raw, table)
    attached()
    assert_read_only(store, ledger, "films")
    store.drop_collection("films")
    assert store.collections() == []
    assert raw.run(Sql(f"SELECT COUNT(*) FROM {table}")) == [[len(FILMS)]]


def test_a_table_of_callslips_own_is_searched_as_well(
    crate: CrateStore,
    server: Settings,
    box: str,
    attached: Attach,
    store: AttachedStore,
    engine: Resources,
) -> None:
    properties: dict[str, Value] = {"genre": "drama"}
    some = [chunk("a", title="Storm", body="wind", properties=properties), chunk("b", title="Calm")]
    crate.batch_upsert_chunks(box, some)
    attached("ours", table=table_of(crate, server, box))
    assert [h.chunk_id for h in ask(engine, query="east").hits] == ["a", "b"]
    found = ask(engine, query="east", having_all={"text.genre": "drama"})
    assert [h.chunk_id for h in found.hits] == ["a"]
    assert set(crate.find_ids(box)) == {"a", "b"}


def test_a_user_who_may_only_read_holds_nothing_up(
    raw: Connection, server: Settings, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Removals ask every store what it has: a store of whose tables none may be made has none."""
    run = Connection.run

    def allowed(self: Connection, sql: Sql) -> list[list[Any]]:
        if sql.text.startswith("CREATE TABLE"):
            raise RelationMissing  # as CrateDB 6.4 answers
        return run(self, sql)

    crate = server.crate.model_copy(update={"schema_name": f"nobody{time.monotonic_ns()}"})
    monkeypatch.setattr(Connection, "run", allowed)
    with closing(make_store(Settings(crate=crate), "crate")) as store:
        assert store.collections() == []
        with pytest.raises(CollectionNotFound):
            store.schema("films")
        with pytest.raises(StoreNotAllowed):
            store.ensure_schema(CollectionSchema("films", VectorSpec(2)))


@pytest.mark.parametrize("method", ["terms", "get_documents", "get_chunks"])
def test_a_collection_that_is_not_there_is_named(store: AttachedStore, method: str) -> None:
    with pytest.raises(CollectionNotFound, match="nowhere"):
        getattr(store, method)("nowhere", ["a"])


@pytest.mark.long
def test_every_statement_is_sql_that_crate_parses(
    raw: Connection,
    table: str,
    attached: Attach,
    store: AttachedStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_table(raw, table)
    reply: set[str] = set()
    run = Connection.run

    def note(self: Connection, sql: Sql) -> list[list[Any]]:
        reply.add(sql.text)
        return run(self, sql)

    monkeypatch.setattr(Connection, "run", note)
    attached()
    east = np.array([1, 0], np.float32)
    for filter_ in FILTERS:
        store.count("films", parse(filter_, None))
    store.hybrid_query("films", east, "storm", 5, fusion="native", horizon=1.0)
    store.keyword_query("films", "storm", 5, parse({"seen": True}, None))
    store.get_chunks("films", store.find_ids("films"), include_vector=True)
    reply |= {statement(f"{kind} search", table) for kind in ("Keyword", "Semantic", "Hybrid")}
    assert len(reply) > 40
    for text in reply:
        (parsed,) = sqlparse(text, raise_exception=True)
        assert parsed.type is not None
        assert not {"'drama'", "'sea'", "'Storm'", "'Ann'"} & set(re.findall(r"'[^']*'", text))


def test_a_server_that_is_away_is_down(
    table: str,
    raw: Connection,
    attached: Attach,
    engine: Resources,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_table(raw, table)
    attached()

    def down(*_: object) -> None:
        raise StoreDown("CrateDB does not answer")

    monkeypatch.setattr(Connection, "run", down)
    with pytest.raises(StoreDown):
        attached(name="other")
    with pytest.raises(StoreDown):
        ask(engine, query="storm")
