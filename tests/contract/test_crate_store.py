"""What is special about the CrateDB store, on the fake and on a real server where one is named."""

import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crate_server import REAL_CRATE, crate_server, crate_settings
from cratedb_sqlparse import sqlparse
from processes import waits_until
from store_cases import EAST, chunk, ids, unit

from callslip.errors import (
    BatchInterrupted,
    InvalidFilter,
    InvalidRequest,
    SettingsError,
    StoreCannot,
    StoreDown,
    StoreReadOnly,
)
from config.settings import Settings
from stores.contract import Store
from stores.crate import columns, connection, store, tables
from stores.crate.connection import Connection, Sql
from stores.crate.store import CrateStore
from stores.crate.tables import Layout, table_name
from stores.filters import matches, parse
from stores.records import CollectionSchema, DocumentRecord, VectorSpec, visible
from stores.registry import make_store

pytest_plugins = ["store_fixtures"]

SERVERS = {"fake": "crate_at", **({"real": "real_crate_at"} if REAL_CRATE in os.environ else {})}


@pytest.fixture(scope="module", params=SERVERS)
def settings(request: pytest.FixtureRequest) -> Settings:
    """Settings of a store at the fake, then at the real server."""
    found: Settings = request.getfixturevalue(SERVERS[request.param])
    return found


@pytest.fixture(scope="module")
def crate(settings: Settings) -> Iterator[CrateStore]:
    """A store at each server in turn."""
    with closing(make_store(settings, "crate")) as made:
        assert isinstance(made, CrateStore)
        yield made


@pytest.fixture
def raw(settings: Settings) -> Iterator[Connection]:
    """A connection of our own to the same server."""
    with closing(Connection(settings.crate.url or "", "crate", None, 60)) as made:
        yield made


@pytest.fixture
def shelf(crate: CrateStore, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty collection of two dimensions."""
    name = f"shelf of {request.node.name}"
    crate.ensure_schema(CollectionSchema(name, VectorSpec(2)))
    yield name
    crate.drop_collection(name)


def table_of(crate: CrateStore, settings: Settings, collection: str) -> str:
    return f'"{settings.crate.schema_name}"."{table_name(crate.schema(collection), "")}"'


def test_the_suite_ran_against_a_real_server() -> None:
    if REAL_CRATE not in os.environ:
        pytest.skip(f"no CrateDB server: set {REAL_CRATE} to the address of one")


# The table


def test_the_table_has_the_columns_of_the_specification_in_their_order() -> None:
    statement = Layout("callslip", 1, "0-1").chunks("t", CollectionSchema("c", VectorSpec(384)))
    text = "TEXT INDEX USING FULLTEXT WITH (analyzer = 'standard') NOT NULL"
    assert statement.startswith(
        f'CREATE TABLE IF NOT EXISTS "callslip"."t" ("hierarchy" TEXT, "title_fs" {text},'
        f' "content_fs" {text}, "content_pretty" TEXT INDEX OFF STORAGE WITH (columnstore = FALSE),'
        ' "ref" TEXT, "xs" FLOAT_VECTOR(384) NOT NULL, "metadata" OBJECT(DYNAMIC) AS ('
    )


def test_other_programs_read_the_table_by_the_specification(
    crate: CrateStore, settings: Settings, raw: Connection, shelf: str
) -> None:
    crate.batch_upsert_chunks(
        shelf,
        [
            chunk(
                "a",
                title="제목",
                body="본문",
                filename="a.pdf",
                section="1장/제2조",
                vector=np.array([3, 4], np.float32),
                properties={"genre": "drama", "valid_from": "2024-01-01", "years": [1999, 2000]},
            )
        ],
    )
    specified = '"hierarchy", "title_fs", "content_fs", "content_pretty", "ref", "xs"'
    ours = "\"metadata\"['text']['genre'], \"metadata\"['numbers']['years'], \"valid_from\""
    table = table_of(crate, settings, shelf)
    ((*texts, xs, genre, years, valid_from),) = raw.run(
        Sql(f'SELECT {specified}, {ours} FROM {table} WHERE "chunk_id" = ?', ("a",))
    )
    assert texts == ["a.pdf/1장/제2조", "제목", "본문", "본문", "a"]
    assert xs == pytest.approx([0.6, 0.8])
    assert (genre, years, valid_from) == ("drama", [1999.0, 2000.0], 1_704_067_200_000)


@pytest.mark.parametrize("dimension", [1, 2048])
def test_any_dimension_up_to_2048_is_taken(crate: CrateStore, dimension: int) -> None:
    name = f"wide-{dimension}"
    crate.ensure_schema(CollectionSchema(name, VectorSpec(dimension)))
    vector = unit(*np.linspace(1, 2, dimension))
    assert crate.batch_upsert_chunks(name, [chunk("a", vector=vector)]).stored == ("a",)
    assert crate.vector_query(name, vector, 1)[0].score == pytest.approx(1)
    crate.drop_collection(name)


def test_more_dimensions_than_crate_holds_are_an_invalid_request(crate: CrateStore) -> None:
    for schema in (
        CollectionSchema("wide", VectorSpec(2049)),
        CollectionSchema("wide", VectorSpec(2), {"further": VectorSpec(2049)}),
        CollectionSchema("w" * 2000, VectorSpec(2)),
    ):
        with pytest.raises(InvalidRequest, match=r"2049; CrateDB holds at most 2048|too long"):
            crate.ensure_schema(schema)
    assert "wide" not in crate.collections()


def test_an_address_that_is_none_is_a_settings_error() -> None:
    for url in ("localhost:4200", "ftp://127.0.0.1"):
        with pytest.raises(SettingsError, match=r"crate\.url"):
            Connection(url, "crate", None, 1)


# Hostile and odd input


HOSTILE = [
    '"; DROP TABLE x; --y',
    "a'b",
    "a\"b'c",
    "']['x",
    "[x]",
    "a.b",
    "_id",
    "%",
    "?",
    "\x00",
    "$1",
]


@pytest.mark.parametrize("name", [*HOSTILE, "📚", "A", "a", "출" * 200, "x" * 200])
def test_names_and_values_are_never_sql(crate: CrateStore, name: str) -> None:
    crate.ensure_schema(CollectionSchema(name, VectorSpec(2), {name: VectorSpec(2)}, tenants=True))
    crate.ensure_tenant(name, name)
    properties = {name: name, f"{name} list": [name, "y"], f"{name} number": 1}
    crate.batch_upsert_chunks(
        name,
        [chunk(name, document_id=name, terms=f"{name} every", properties=properties), chunk("b")],
        tenant=name,
    )
    (found,) = crate.get_chunks(name, [name], tenant=name)
    assert (found.chunk_id, found.properties) == (name, properties)
    star = name.replace("*", "")
    filters = ({name: name}, {f"{name} ~": f"*{star}*"}, {f"{name} list @": name})
    for filter_ in (*filters, {f"{name} number >": 0}, {"document_id": name}):
        assert crate.find_ids(name, parse(filter_, None), tenant=name) == [name]
    assert crate.aggregate_group_by(name, name, tenant=name) == [(name, 1)]
    crate.delete_document(name, name, tenant=name)
    assert crate.find_ids(name, tenant=name) == ["b"]
    crate.drop_collection(name)
    assert name not in crate.collections()


def test_like_takes_no_sign_of_its_own_for_a_wild_card(crate: CrateStore, shelf: str) -> None:
    texts = {"percent": "50%", "under": "5_0", "slash": "5\\0", "other": "5x0", "star": "5"}
    crate.batch_upsert_chunks(shelf, [chunk(i, properties={"p": t}) for i, t in texts.items()])
    for pattern, expected in (("5%", []), ("*%", ["percent"]), ("5_0", ["under"])):
        assert crate.find_ids(shelf, parse({"p ~": pattern}, None)) == expected
    assert crate.find_ids(shelf, parse({"p ~": "5\\*"}, None)) == ["slash"]


def test_a_pattern_that_crate_cannot_compile_is_an_invalid_filter(
    crate: CrateStore, shelf: str
) -> None:
    crate.batch_upsert_chunks(shelf, [chunk("a", properties={"p": "x"})])
    with pytest.raises(InvalidFilter, match="'p' is too long"):
        crate.find_ids(shelf, parse({"p ~": "a*" * 65}, None))
    assert crate.find_ids(shelf, parse({"p ~": "*" + "가나다라" * 200}, None)) == []
    with pytest.raises(InvalidFilter, match="too long"):
        crate.find_ids(shelf, parse({"p ~": "*" + "a" * 3000}, None))


def test_long_ids_and_long_terms_are_whole(crate: CrateStore, shelf: str) -> None:
    long = "x" * 32_000
    crate.batch_upsert_documents(shelf, [DocumentRecord(long, "", "")])
    terms = f"{'y' * 300} z"
    crate.batch_upsert_chunks(
        shelf, [chunk(long, document_id=long, section=long, terms=terms), chunk("b", terms="y")]
    )
    assert crate.document_ids(shelf) == {long, "doc"}
    assert crate.get_documents(shelf, [long])[0].document_id == long
    assert ids(crate.keyword_query(shelf, "y" * 300, 5)) == [long]
    assert crate.keyword_query(shelf, "y" * 45, 5) == []
    (found,) = crate.get_chunks(shelf, [long], include_terms=True)
    assert (found.section, found.terms) == (long, terms)


def test_names_beyond_the_columns_of_a_table_are_found_all_the_same(
    crate: CrateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (columns, tables):
        monkeypatch.setattr(module, "MAX_COLUMNS", 60)
    crate.drop_collection("crowded")
    crate.ensure_schema(CollectionSchema("crowded", VectorSpec(2)))
    values: list[Any] = ["text", 2.5, True, "2024-03-01", ["x", "y", "x"], [1, 2], [False], "50%"]
    written = [
        chunk(f"c{i:02}", properties={f"p{i}": values[i % 8], f"q{i}": 1, "common": i % 3})
        for i in range(48)
    ]
    for some in (written[:20], written[20:]):
        assert not crate.batch_upsert_chunks("crowded", some).failed
    filters: list[dict[str, object]] = [{f"p{i}": values[i % 8]} for i in range(48) if i % 8 < 4]
    for i in range(40, 48):
        filters += [{f"p{i} ~": "*e*"}, {f"p{i} !=": "text"}, {f"p{i} not-in": [2.5, True]}]
        filters += [{f"p{i} >": 2}, {f"p{i} <=": "2024-03-01"}, {f"q{i}": 1}]
        filters += [{f"p{i} @": "x"}, {f"p{i} contains": [1, False]}]
    for filter_ in filters:
        where = parse(filter_, None)
        assert where is not None
        expected = [c.chunk_id for c in written if matches(where, visible(c))]
        assert crate.find_ids("crowded", where) == expected
        assert sorted(ids(crate.vector_query("crowded", EAST, 99, where))) == expected
    for i in range(40, 48):
        expected_groups = {"x": 1, "y": 1} if i % 8 == 4 else None
        groups = dict(crate.aggregate_group_by("crowded", f"p{i}"))
        assert len(groups) in (1, 2)
        assert expected_groups in (None, groups)
    assert dict(crate.aggregate_group_by("crowded", "common")) == {0: 16, 1: 16, 2: 16}
    crate.drop_collection("crowded")


def test_thousands_of_names_do_not_break_a_table(crate: CrateStore, shelf: str) -> None:
    for start in range(0, 3000, 60):
        properties: dict[str, Any] = {f"name {start + i}": f"v{i}" for i in range(60)}
        batch = [chunk(f"c{start:04}", properties=properties)]
        assert not crate.batch_upsert_chunks(shelf, batch).failed
    for i in (0, 900, 1100, 2999):
        where = parse({f"name {i}": f"v{i % 60}", f"name {i} ~": "v*"}, None)
        assert crate.find_ids(shelf, where) == [f"c{i - i % 60:04}"]


# The three queries


RANKS = {"both first": (1, 1), "seven": (7, 2), "ten": (10, 11)}


def test_native_fusion_is_that_of_the_specification(crate: CrateStore, shelf: str) -> None:
    """Reciprocal rank fusion: ranks (1, 1) give .032786, (7, 2) .031054 and (10, 11) .02837."""
    free = [i for i in range(1, 13) if i not in {k for k, _ in RANKS.values()}]
    other = [i for i in range(1, 13) if i not in {v for _, v in RANKS.values()}]
    ranks = {**RANKS, **{f"c{i}": pair for i, pair in enumerate(zip(free, other, strict=True))}}
    batch = []
    for name, (keyword, vector) in ranks.items():
        turn = vector / 20
        terms = "x " * (13 - keyword) + "y " * keyword
        batch.append(chunk(name, vector=unit(np.cos(turn), np.sin(turn)), terms=terms))
    batch.append(chunk("words only", vector=unit(-1, 0), terms="x " + "y " * 12))
    batch.append(chunk("vector only", vector=EAST, terms="y"))
    crate.batch_upsert_chunks(shelf, batch)
    crate.delete_chunks(shelf, ["vector only"])
    found = {
        c.chunk_id: c for c in crate.hybrid_query(shelf, EAST, "x", 20, pool=12, fusion="native")
    }
    for name, expected in zip(RANKS, (0.032786, 0.031054, 0.02837), strict=True):
        candidate = found[name]
        assert candidate.score == expected
        assert candidate.vector is not None
        assert candidate.keyword is not None
        assert (candidate.keyword.rank, candidate.vector.rank) == RANKS[name]
        assert candidate.vector.score == pytest.approx(np.cos(RANKS[name][1] / 20), abs=1e-5)
        alone = {h.chunk_id: h.score for h in crate.keyword_query(shelf, "x", 20)}
        assert candidate.keyword.score == alone[name]
    assert next(iter(found)) == "both first"


def test_a_hit_of_one_leg_alone_counts_and_ties_go_by_id(crate: CrateStore, shelf: str) -> None:
    crate.batch_upsert_chunks(
        shelf,
        [
            chunk("b", terms="x", vector=unit(-1, 0)),
            chunk("c", terms="y"),
            chunk("a", terms="x", vector=unit(-1, 0)),
        ],
    )
    found = crate.hybrid_query(shelf, EAST, "x", 9, pool=1, fusion="native")
    assert [(c.chunk_id, c.score) for c in found] == [("a", 0.016393), ("c", 0.016393)]
    assert (found[0].vector, found[1].keyword) == (None, None)
    found = crate.hybrid_query(shelf, EAST, "x", 1, pool=9, fusion="native")
    assert len(found) == 1


def test_native_fusion_takes_filters_horizons_and_named_vectors(crate: CrateStore) -> None:
    schema = CollectionSchema(
        "fused", VectorSpec(2), {"l2": VectorSpec(2, "l2-squared"), "dot": VectorSpec(2, "dot")}
    )
    crate.drop_collection("fused")
    crate.ensure_schema(schema)
    turns = {"near": 0.1, "middle": 0.8, "far": 2.5}
    named = {"l2": np.array([0, 2], np.float32), "dot": np.array([1, 1], np.float32)}
    crate.batch_upsert_chunks(
        "fused",
        [
            chunk(i, vector=unit(np.cos(t), np.sin(t)), terms="x", named=named if t < 1 else {})
            for i, t in turns.items()
        ],
    )

    def ask(**options: Any) -> set[str]:
        query = options.pop("query", EAST)
        found = crate.hybrid_query("fused", query, "x", 9, fusion="native", **options)
        return {c.chunk_id for c in found}

    assert ask() == set(turns)
    assert ask(horizon=0.5) == {"near", "middle"}
    assert ask(horizon=1 - float(np.cos(0.8)) + 1e-6) == {"near", "middle"}
    assert ask(horizon=-1) == set()
    assert ask(where=parse({"document_id": "nobody"}, None)) == set()
    assert ask(where=parse({"nobody": 1}, None)) == set()
    assert ask(where=parse({"level": 0}, None), horizon=0.01) == {"near"}
    assert ask(vector_name="l2", horizon=5.0) == {"near", "middle"}
    assert ask(vector_name="l2", horizon=4.9) == set()
    for options in ({"vector_name": "dot"}, {"method": "manhattan"}):
        with pytest.raises(StoreCannot, match="indexed metric"):
            ask(**options)
    crate.drop_collection("fused")


def test_a_filtered_search_fills_its_page(crate: CrateStore, shelf: str) -> None:
    """The index filters after its k nearest, all of which this filter takes away."""
    turns = np.linspace(0, 1, 1500)
    crate.batch_upsert_chunks(
        shelf,
        [
            chunk(f"{i:04}", vector=unit(np.cos(t), np.sin(t)), level=int(i >= 1400))
            for i, t in enumerate(turns)
        ],
    )
    where = parse({"level": 1}, None)
    expected = [f"{i}" for i in range(1400, 1450)]
    assert ids(crate.vector_query(shelf, EAST, 50, where)) == expected
    found = crate.hybrid_query(shelf, EAST, "every", 500, where, pool=50, fusion="native")
    assert {c.chunk_id for c in found if c.vector} == set(expected)


# Servers that fail


def test_a_killed_server_interrupts_a_batch_and_a_retry_finishes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "ROWS_PER_CALL", 20)
    batch = [chunk(f"{i:05}", body="long " * 500) for i in range(4000)]
    schema = CollectionSchema("c", VectorSpec(2))
    with crate_server(tmp_path) as (url, server):
        made = make_store(crate_settings(url), "crate")
        made.ensure_schema(schema)

        def kill() -> None:
            with closing(make_store(crate_settings(url), "crate")) as other:
                assert waits_until(lambda: other.count("c") > 100)
            server.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(BatchInterrupted) as caught:
            made.batch_upsert_chunks("c", batch)
        killer.join()
    written = [c.chunk_id for c in batch]
    assert len(caught.value.stored) >= 100
    assert [*caught.value.stored, *caught.value.unstored] == written
    with pytest.raises(StoreDown, match="does not answer"):
        made.count("c")
    port = int(url.rpartition(":")[2])
    with crate_server(tmp_path, port), closing(made):
        assert set(caught.value.stored) <= set(made.find_ids("c"))
        assert list(made.batch_upsert_chunks("c", batch).stored) == written
        assert made.find_ids("c") == written


@pytest.mark.parametrize("block", ["blocks.write", "blocks.read_only_allow_delete"])
def test_a_table_that_takes_no_writes_is_read_only(
    crate: CrateStore, settings: Settings, raw: Connection, shelf: str, block: str
) -> None:
    crate.batch_upsert_chunks(shelf, [chunk("a")])
    table = table_of(crate, settings, shelf)
    raw.run(Sql(f'ALTER TABLE {table} SET ("{block}" = TRUE)'))
    with pytest.raises(StoreReadOnly):
        crate.batch_upsert_chunks(shelf, [chunk("b")])
    assert ids(crate.vector_query(shelf, EAST, 5)) == ["a"]
    raw.run(Sql(f'ALTER TABLE {table} SET ("{block}" = FALSE)'))
    assert crate.batch_upsert_chunks(shelf, [chunk("b")]).stored == ("b",)


def test_a_server_that_is_away_or_never_answers_is_down() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with closing(make_store(crate_settings(url, timeout=0.2), "crate")) as made:
            for call in CALLS:
                with pytest.raises(StoreDown, match="does not answer"):
                    call(made)
    with closing(make_store(crate_settings(url, timeout=0.2), "crate")) as made:
        for call in CALLS:
            with pytest.raises(StoreDown, match="does not answer"):
                call(made)


CALLS: list[Callable[[Store], object]] = [
    lambda s: s.ping(),
    lambda s: s.collections(),
    lambda s: s.ensure_schema(CollectionSchema("c", VectorSpec(2))),
    lambda s: s.vector_query("c", EAST, 5),
    lambda s: s.batch_upsert_chunks("c", [chunk("a")]),
    lambda s: s.drop_collection("c"),
]


def test_threads_share_a_store(crate: CrateStore, shelf: str) -> None:
    failures: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for i in range(10):
                properties: dict[str, Any] = {f"p{i}": name}
                some = [chunk(f"{name} {i} {j}", properties=properties) for j in range(5)]
                assert len(crate.batch_upsert_chunks(shelf, some).stored) == 5
                assert len(crate.vector_query(shelf, EAST, 5)) == 5
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert crate.count(shelf) == 200
    assert crate.count(shelf, parse({"p3": 2}, None)) == 5


# What the server refuses, and the fake with it


def test_a_row_that_the_server_refuses_fails_alone(
    crate: CrateStore, settings: Settings, raw: Connection, shelf: str
) -> None:
    table = table_of(crate, settings, shelf)
    names = ("chunk_id", "document_id", "title_fs", "content_fs", "terms", "xs", "parent_id")
    rows = [
        ["good", "d", "", "", "", [1, 0], ""],
        ["wide", "d", "", "", "", [1, 0, 0], ""],
        ["null", "d", None, "", "", [1, 0], ""],
        ["immense", "d", "", "", "", [1, 0], "x" * 40_000],
        *([f"wide {i}", "d", "", "", "", [1], ""] for i in range(20)),
    ]
    refused = raw.run_many(tables.upsert(table, names, "chunk_id"), rows)
    assert set(refused) == set(range(1, 24))
    assert refused[1] == "CrateDB refused it (SQLParseException)"
    assert crate.chunk_ids(shelf)["vector"] == set()
    raw.run(Sql(f"REFRESH TABLE {table}"))
    assert crate.chunk_ids(shelf)["vector"] == {"good"}


REFUSALS: dict[str, tuple[str, list[object], str]] = {
    "wrong dimension": (
        'SELECT "ref" FROM {t} WHERE KNN_MATCH("xs", ?, ?)',
        [[1, 0, 0], 5],
        "SQLParse",
    ),
    "k of 0": ('SELECT "ref" FROM {t} WHERE KNN_MATCH("xs", ?, ?)', [[1, 0], 0], "SQLParse"),
    "unknown column": ('SELECT "nobody" FROM {t}', [], "ColumnUnknown"),
    "unknown property": ("SELECT \"metadata\"['text']['zz'] FROM {t}", [], "ColumnUnknown"),
    "unknown filter": ('SELECT "ref" FROM {t} WHERE "nobody" = ?', ["x"], "ColumnUnknown"),
    "wrong type": ('SELECT "ref" FROM {t} WHERE "level" = ?', ["x"], "SQLParse"),
    "wrong types": ('SELECT "ref" FROM {t} WHERE "level" = ANY(?)', [["x"]], "SQLParse"),
    "unknown table": ('SELECT "ref" FROM "{s}"."nobody"', [], "RelationUnknown"),
    "unknown schema": ('SELECT "ref" FROM "nobody"."nobody"', [], "SchemaUnknown"),
    "too few values": ('SELECT "ref" FROM {t} WHERE "ref" = ?', [], "SQLParse"),
    "folded away": (
        'SELECT "ref" FROM {t} WHERE "ref" = ? AND FALSE LIMIT ?',
        ["x", 5],
        "IllegalState",
    ),
    "a column twice": (
        "ALTER TABLE {t} ADD COLUMN \"metadata\"['text']['title'] TEXT",
        [],
        "SQLParse",
    ),
    "a dot": (
        "ALTER TABLE {t} ADD COLUMN \"metadata\"['text']['a.b'] TEXT",
        [],
        "InvalidColumnName",
    ),
    "brackets": (
        "ALTER TABLE {t} ADD COLUMN \"metadata\"['text']['[a]'] TEXT",
        [],
        "InvalidColumnName",
    ),
    "a wide vector": (
        'CREATE TABLE "{s}"."w" ("xs" FLOAT_VECTOR(2049)) CLUSTERED INTO 1 SHARDS'
        " WITH (number_of_replicas = '0')",
        [],
        "SQLParse",
    ),
    "an odd table": (
        'CREATE TABLE "{s}"."a b" ("x" TEXT) CLUSTERED INTO 1 SHARDS'
        " WITH (number_of_replicas = '0')",
        [],
        "InvalidRelationName",
    ),
    "a table twice": (
        "CREATE TABLE {t} (\"x\" TEXT) CLUSTERED INTO 1 SHARDS WITH (number_of_replicas = '0')",
        [],
        "RelationAlreadyExists",
    ),
    "no table": ('DROP TABLE "{s}"."nobody"', [], "RelationUnknown"),
    "a null key": ('INSERT INTO {t} ("chunk_id") VALUES (?)', [None], "SQLParse"),
    "a null column": ('INSERT INTO {t} ("chunk_id") VALUES (?)', ["x"], "SQLParse"),
    "an unknown target": ('INSERT INTO {t} ("nobody") VALUES (?)', ["x"], "ColumnUnknown"),
    "too many wild cards": ('SELECT "ref" FROM {t} WHERE "ref" LIKE ?', ["a%" * 500], "TooComplex"),
    "too many words": (
        'SELECT "ref" FROM {t} WHERE MATCH(("terms" 2.0), ?)',
        [" ".join(f"w{i}" for i in range(9000))],
        "TooManyClauses",
    ),
    "no statement": ("SELEKT 1", [], "Parsing"),
    "half a statement": ('SELECT "ref" FROM', [], "Parsing"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_the_real_server_refuses_the_fake_refuses_too(
    crate: CrateStore,
    settings: Settings,
    raw: Connection,
    shelf: str,
    case: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crate.batch_upsert_chunks(shelf, [chunk("a", parent_id="p")])
    names: list[str] = []
    monkeypatch.setattr(connection, "_named", lambda name, _: names.append(name) or StoreDown(name))
    text, args, expected = REFUSALS[case]
    table = table_of(crate, settings, shelf)
    with pytest.raises(StoreDown):
        raw.run(Sql(text.format(t=table, s=settings.crate.schema_name), tuple(args)))
    assert names[0].startswith(expected)


def test_rows_are_seen_once_they_are_refreshed(
    crate: CrateStore, settings: Settings, raw: Connection, shelf: str
) -> None:
    table = table_of(crate, settings, shelf)
    raw.run(Sql(f'ALTER TABLE {table} SET ("refresh_interval" = 0)'))
    names = ("chunk_id", "document_id", "title_fs", "content_fs", "terms", "xs")
    raw.run_many(tables.upsert(table, names, "chunk_id"), [["a", "d", "", "", "x", [1, 0]]])
    by_key = f'SELECT "chunk_id" FROM {table} WHERE "chunk_id" = ?'
    assert raw.run(Sql(by_key, ("a",))) == [["a"]]
    for _ in range(2):
        assert crate.count(shelf) == 0
        assert crate.keyword_query(shelf, "x", 5) == []
        assert crate.vector_query(shelf, EAST, 5) == []
    raw.run(Sql(f"REFRESH TABLE {table}"))
    assert crate.count(shelf) == 1
    raw.run(Sql(f'DELETE FROM {table} WHERE "chunk_id" = ?', ("a",)))
    assert crate.count(shelf) == 1
    raw.run(Sql(f"REFRESH TABLE {table}"))
    assert crate.count(shelf) == 0


def test_a_filter_on_text_adds_to_the_score_unless_the_boost_outweighs_it(
    crate: CrateStore, settings: Settings, raw: Connection, shelf: str
) -> None:
    crate.batch_upsert_chunks(shelf, [chunk("a", terms="x"), chunk("b", terms="x y")])
    table = table_of(crate, settings, shelf)
    match = f'SELECT _score AS "s" FROM {table} WHERE MATCH(("terms" 1.0), ?)'
    plain = raw.run(Sql(f'{match} ORDER BY "s"', ("y",)))
    more = raw.run(Sql(f'{match} AND "document_id" = ? ORDER BY "s"', ("y", "doc")))
    assert more[0][0] > plain[0][0]
    where = parse({"document_id": "doc"}, None)
    assert crate.keyword_query(shelf, "y", 5, where) == crate.keyword_query(shelf, "y", 5)


# Statements


def test_every_statement_is_sql_that_crate_parses(
    crate_at: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: set[str] = set()
    run, run_many = Connection.run, Connection.run_many

    def note(self: Connection, sql: Sql) -> Any:
        said.add(sql.text)
        return run(self, sql)

    def note_many(self: Connection, text: str, rows: Any) -> Any:
        said.add(text)
        return run_many(self, text, rows)

    monkeypatch.setattr(Connection, "run", note)
    monkeypatch.setattr(Connection, "run_many", note_many)
    with closing(make_store(crate_at, "crate")) as made:
        _do_everything(made)
    assert len(said) > 40
    for text in said:
        (statement,) = sqlparse(text, raise_exception=True)
        assert statement.type is not None
        literals = set(re.findall(r"'([^']*)'", text)) - {"standard", "whitespace", "0", "path"}
        assert not [literal for literal in literals if literal == "drama"], text


def _do_everything(made: Store) -> None:
    """Every method, every operator, every type, every kind of vector."""
    schema = CollectionSchema(
        "all", VectorSpec(2), {"title": VectorSpec(2, "l2-squared")}, tenants=True
    )
    made.drop_collection("all")
    made.ensure_schema(schema)
    made.ensure_tenant("all", "t")
    properties: dict[str, Any] = {
        **{"genre's": "drama", "n": 1.5, "b": True, "d": "2024-01-01", "dramas": ["drama"]},
        **{"ns": [1.5], "bs": [True], "ds": ["2024-01-01"]},
    }
    written = [chunk("a", properties=properties, named={"title": EAST}), chunk("b")]
    made.batch_upsert_chunks("all", written, tenant="t")
    made.batch_upsert_documents("all", [DocumentRecord("doc", "drama", "")], tenant="t")
    filters: list[dict[str, object]] = [
        *({"genre's": "drama"}, {"genre's !=": "drama"}, {"genre's ~": "dra*"}, {"n >": 1}),
        *({"d <=": "2025-01-01"}, {"dramas @": "drama"}, {"ns contains": [1.5, True]}),
        *({"genre's in": ["drama", 1]}, {"genre's not-in": ["drama", True]}),
    ]
    for filter_ in filters:
        made.count("all", parse(filter_, {"n": 1.5, "b": True}), tenant="t")
    where = parse({"genre's": "drama"}, None)
    for name in ("", "title"):
        made.vector_query("all", EAST, 5, where, tenant="t", vector_name=name)
    options: dict[str, Any] = {"tenant": "t", "fusion": "native", "horizon": 1.0}
    made.hybrid_query("all", EAST, "every drama", 5, where, **options)
    made.keyword_query("all", "every drama", 5, where, tenant="t")
    made.find_ids("all", where, tenant="t")
    for prop in (*properties, "level", "nobody"):
        made.aggregate_group_by("all", prop, parse({"b": True}, None), tenant="t")
    made.get_chunks("all", ["a"], tenant="t", include_vector=True, include_terms=True)
    made.get_documents("all", ["doc"], tenant="t")
    made.chunk_ids("all", "doc", tenant="t")
    made.document_ids("all", tenant="t")
    made.deepest_level("all", tenant="t")
    made.delete_chunks("all", ["a"], tenant="t")
    made.delete_document("all", "doc", tenant="t")
    made.collections()
    made.tenants("all")
    made.ping()
    made.drop_tenant("all", "t")
    made.drop_collection("all")
