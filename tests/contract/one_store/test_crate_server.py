"""What a CrateDB server refuses, the fake with it, and what holds when it is lost or blocked."""

import re
import socket
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from crate.client.exceptions import ProgrammingError
from crate_server import crate_server, crate_settings, table_of
from cratedb_sqlparse import sqlparse
from faulty_proxy import NONSENSE, Faults, faulty_proxy
from processes import waits_until
from store_cases import EAST, chunk, ids

from callslip.config.settings import Settings
from callslip.errors import (
    BatchInterrupted,
    CallslipError,
    InternalError,
    StoreDown,
    StoreNotAllowed,
    StoreReadOnly,
)
from callslip.stores.contract import Store
from callslip.stores.crate import connection, store, tables
from callslip.stores.crate.connection import Connection, Sql
from callslip.stores.crate.store import CrateStore
from callslip.stores.properties.filters import parse
from callslip.stores.records import CollectionSchema, DocumentRecord, VectorSpec
from callslip.stores.registry import make_store

pytest_plugins = ["store_fixtures", "crate_fixtures"]


@pytest.mark.long
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
    with pytest.raises(StoreDown, match="not answer"):
        made.count("c")
    port = int(url.rpartition(":")[2])
    with crate_server(tmp_path, port), closing(made):
        assert waits_until(lambda: answers(made))
        assert set(caught.value.stored) <= set(made.find_ids("c"))
        assert list(made.batch_upsert_chunks("c", batch).stored) == written
        assert made.find_ids("c") == written


def answers(made: Store) -> bool:
    """Whether the store has noticed that its server is back."""
    with suppress(StoreDown):
        made.ping()
        return True
    return False


@pytest.mark.parametrize("block", ["blocks.write", "blocks.read_only_allow_delete"])
def test_a_table_that_takes_no_writes_is_read_only(
    crate: CrateStore, server: Settings, raw: Connection, box: str, block: str
) -> None:
    crate.batch_upsert_chunks(box, [chunk("a")])
    table = table_of(crate, server, box)
    raw.run(Sql(f'ALTER TABLE {table} SET ("{block}" = TRUE)'))
    with pytest.raises(StoreReadOnly):
        crate.batch_upsert_chunks(box, [chunk("b")])
    assert ids(crate.vector_query(box, EAST, 5)) == ["a"]
    raw.run(Sql(f'ALTER TABLE {table} SET ("{block}" = FALSE)'))
    assert crate.batch_upsert_chunks(box, [chunk("b")]).stored == ("b",)


def test_a_server_that_is_away_or_never_answers_is_down() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with closing(make_store(crate_settings(url, timeout=0.2), "crate")) as made:
            for call in CALLS:
                with pytest.raises(StoreDown, match="not answer"):
                    call(made)
    with closing(make_store(crate_settings(url, timeout=0.2), "crate")) as made:
        for call in CALLS:
            with pytest.raises(StoreDown, match="not answer"):
                call(made)


def test_a_ping_that_something_else_answers_is_a_server_that_is_down(server: Settings) -> None:
    faults = Faults()
    port = int(str(server.crate.url).rpartition(":")[2])
    with faulty_proxy(port, faults) as proxy:
        settings = crate_settings(f"http://127.0.0.1:{proxy}")
        for kind in NONSENSE:
            with closing(make_store(settings, "crate")) as made:
                faults.begin(kind)
                with pytest.raises(StoreDown):
                    made.ping()


CALLS: list[Callable[[Store], object]] = [
    lambda s: s.ping(),
    lambda s: s.collections(),
    lambda s: s.ensure_schema(CollectionSchema("c", VectorSpec(2))),
    lambda s: s.vector_query("c", EAST, 5),
    lambda s: s.batch_upsert_chunks("c", [chunk("a")]),
    lambda s: s.drop_collection("c"),
]


def test_threads_share_a_store(crate: CrateStore, box: str) -> None:
    failures: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for i in range(10):
                properties: dict[str, Any] = {f"p{i}": name}
                some = [chunk(f"{name} {i} {j}", properties=properties) for j in range(5)]
                assert len(crate.batch_upsert_chunks(box, some).stored) == 5
                assert len(crate.vector_query(box, EAST, 5)) == 5
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert crate.count(box) == 200
    assert crate.count(box, parse({"p3": 2}, None)) == 5


def test_a_row_that_the_server_refuses_fails_alone(
    crate: CrateStore, server: Settings, raw: Connection, box: str
) -> None:
    table = table_of(crate, server, box)
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
    assert crate.chunk_ids(box)["vector"] == set()
    raw.run(Sql(f"REFRESH TABLE {table}"))
    assert crate.chunk_ids(box)["vector"] == {"good"}


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
    server: Settings,
    raw: Connection,
    box: str,
    case: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crate.batch_upsert_chunks(box, [chunk("a", parent_id="p")])
    names: list[str] = []
    monkeypatch.setattr(connection, "_named", lambda name, _: names.append(name) or StoreDown(name))
    text, args, expected = REFUSALS[case]
    table = table_of(crate, server, box)
    with pytest.raises(StoreDown):
        raw.run(Sql(text.format(t=table, s=server.crate.schema_name), tuple(args)))
    assert names[0].startswith(expected)


def test_rows_are_seen_once_they_are_refreshed(
    crate: CrateStore, server: Settings, raw: Connection, box: str
) -> None:
    table = table_of(crate, server, box)
    raw.run(Sql(f'ALTER TABLE {table} SET ("refresh_interval" = 0)'))
    names = ("chunk_id", "document_id", "title_fs", "content_fs", "terms", "xs")
    raw.run_many(tables.upsert(table, names, "chunk_id"), [["a", "d", "", "", "x", [1, 0]]])
    by_key = f'SELECT "chunk_id" FROM {table} WHERE "chunk_id" = ?'
    assert raw.run(Sql(by_key, ("a",))) == [["a"]]
    for _ in range(2):
        assert crate.count(box) == 0
        assert crate.keyword_query(box, "x", 5) == []
        assert crate.vector_query(box, EAST, 5) == []
    raw.run(Sql(f"REFRESH TABLE {table}"))
    assert crate.count(box) == 1
    raw.run(Sql(f'DELETE FROM {table} WHERE "chunk_id" = ?', ("a",)))
    assert crate.count(box) == 1
    raw.run(Sql(f"REFRESH TABLE {table}"))
    assert crate.count(box) == 0


def test_a_filter_on_text_adds_to_the_score_unless_the_boost_outweighs_it(
    crate: CrateStore, server: Settings, raw: Connection, box: str
) -> None:
    crate.batch_upsert_chunks(box, [chunk("a", terms="x"), chunk("b", terms="x y")])
    table = table_of(crate, server, box)
    match = f'SELECT _score AS "s" FROM {table} WHERE MATCH(("terms" 1.0), ?)'
    plain = raw.run(Sql(f'{match} ORDER BY "s"', ("y",)))
    more = raw.run(Sql(f'{match} AND "document_id" = ? ORDER BY "s"', ("y", "doc")))
    assert more[0][0] > plain[0][0]
    where = parse({"document_id": "doc"}, None)
    assert crate.keyword_query(box, "y", 5, where) == crate.keyword_query(box, "y", 5)


@pytest.mark.long
def test_every_statement_is_sql_that_crate_parses(
    crate_at: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply: set[str] = set()
    run, run_many = Connection.run, Connection.run_many

    def note(self: Connection, sql: Sql) -> Any:
        reply.add(sql.text)
        return run(self, sql)

    def note_many(self: Connection, text: str, rows: Any) -> Any:
        reply.add(text)
        return run_many(self, text, rows)

    monkeypatch.setattr(Connection, "run", note)
    monkeypatch.setattr(Connection, "run_many", note_many)
    with closing(make_store(crate_at, "crate")) as made:
        _do_everything(made)
    assert len(reply) > 40
    for text in reply:
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
    made.delete_documents("all", ["doc"], tenant="t")
    made.collections()
    made.tenants("all")
    made.ping()
    made.drop_tenant("all", "t")
    made.drop_collection("all")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("IllegalIndexShardStateException[CurrentState[RECOVERING]]", StoreDown),
        ("ClusterBlockException[blocked by: [SERVICE_UNAVAILABLE/1/not recovered];]", StoreDown),
        ("ClusterBlockException[blocked by: [FORBIDDEN/8/write (api)];]", StoreReadOnly),
        ("VersionConflictException[x]", StoreDown),
        ("MissingPrivilegeException[Missing 'DQL' privilege for user 'bob']", StoreNotAllowed),
        ("<html>502</html>", StoreDown),
        ("SQLParseException[secret]", InternalError),
    ],
)
def test_an_error_that_passes_is_told_from_a_mistake(
    message: str, expected: type[CallslipError]
) -> None:
    error = connection._translated(ProgrammingError(message))
    assert type(error) is expected
    assert "secret" not in str(error)
