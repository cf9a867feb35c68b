"""A ledger of any earlier commit is brought up to date; what cannot be is refused in a sentence."""

import hashlib
import importlib
import json
import multiprocessing
import os
import sqlite3
import tarfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from ledger_moves import publish
from sqlalchemy import Connection, event, inspect, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from callslip.errors import LedgerError, SettingsError
from callslip.stores.ledger import Ledger
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.migrations.history import (
    CONVERSATIONS,
    LEDGER,
    History,
    upgrade,
    upgrade_url,
)
from callslip.stores.records import CollectionSchema, VectorSpec

pytest_plugins = ["ledger_fixtures"]

BY_REVISIONS = replace(LEDGER, create=None)
"""The ledger's history without its short cut for an empty database."""

FIXTURE = Path(__file__).parents[2] / "data" / "ledger-6253ab1" / "ledger-6253ab1.tar.xz"
"""A data folder of that commit; the README beside it says what is in it."""

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["ledger_moves", "alembic.command"])  # each starts in milliseconds


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    with closing(Database(ledger_url)) as database:
        yield database


def forget_number(database: Database) -> None:
    """Make a ledger one that a commit from before revision 1 made."""
    with database.writing() as connection:
        connection.execute(text("DROP TABLE ledger_revision"))


def run(database: Database, *statements: str) -> None:
    with database.writing() as connection:
        for statement in statements:
            connection.execute(text(statement))


def differences(database: Database) -> Any:
    """What Alembic would change to come from a database's tables to those of the code.

    It cannot compare an index of an expression on SQLite; `tables_of` does.
    """
    not_compared = {"ledger_revision"} | ({"versions_waiting"} if database.is_sqlite else set())
    with database.reading() as connection:
        options = {
            "compare_type": True,
            "include_object": lambda item, name, kind, *_: name not in not_compared,
        }
        return compare_metadata(
            MigrationContext.configure(connection, opts=options), schema.metadata
        )


def describe(index: Any) -> str:
    options = {key: str(value) for key, value in index.get("dialect_options", {}).items()}
    return str({**index, "dialect_options": options})


def tables_of(connection: Connection) -> dict[str, Any]:
    """Columns, keys and indexes of all tables but the revision's, as the database says."""
    inspector = inspect(connection)
    described = {}
    for name in sorted(set(inspector.get_table_names()) - {"ledger_revision"}):
        columns = [{**each, "type": str(each["type"])} for each in inspector.get_columns(name)]
        described[name] = [
            sorted(columns, key=lambda column: column["name"]),
            inspector.get_pk_constraint(name)["constrained_columns"],
            sorted(inspector.get_foreign_keys(name), key=str),
            sorted(inspector.get_unique_constraints(name), key=str),
            sorted((each["name"], describe(each)) for each in inspector.get_indexes(name)),
        ]
    return described


def tables(database: Database) -> dict[str, Any]:
    with database.reading() as connection:
        return tables_of(connection)


def fingerprint() -> str:
    """Of every statement that makes the tables of the code, on both databases."""
    statements = [
        str(make.compile(dialect=dialect))
        for dialect in (sqlite.dialect(), postgresql.dialect())
        for table in schema.metadata.sorted_tables
        for make in (
            CreateTable(table),
            *(CreateIndex(index) for index in sorted(table.indexes, key=lambda each: each.name)),
        )
    ]
    return hashlib.sha256("\n".join(statements).encode()).hexdigest()[:16]


def revisions(history: History) -> dict[str, Any]:
    config = Config()
    config.set_main_option("script_location", str(history.folder))
    script = ScriptDirectory.from_config(config)
    return {each.revision: each.module for each in script.walk_revisions()}


def test_a_table_does_not_change_without_a_revision() -> None:
    newest = revisions(LEDGER)[f"{LEDGER.newest:04}"]
    message = "tables changed: add a revision (stores/ledger/migrations/__init__.py says how)"
    assert fingerprint() == newest.FINGERPRINT, message


@pytest.mark.parametrize("history", [LEDGER, CONVERSATIONS], ids=lambda history: history.name)
def test_revisions_are_numbered_without_gaps(history: History) -> None:
    numbers = [f"{number:04}" for number in range(1, history.newest + 1)]
    modules = revisions(history)
    assert sorted(modules) == numbers
    assert [modules[each].down_revision for each in numbers] == [None, *numbers[:-1]]


def test_the_revisions_lead_to_the_tables_of_the_code(
    ledger_url: str, database: Database, tmp_path: Path
) -> None:
    upgrade(database, BY_REVISIONS)
    assert differences(database) == []
    by_revisions = tables(database)
    run(
        database, *(f"DROP TABLE {table.name}" for table in reversed(schema.metadata.sorted_tables))
    )
    forget_number(database)
    upgrade(database, LEDGER)
    assert tables(database) == by_revisions


def test_the_sqlite_statements_of_the_revisions_are_those_of_the_code(tmp_path: Path) -> None:
    statements = []
    for name, history in (("a.db", LEDGER), ("b.db", BY_REVISIONS)):
        with closing(Database(f"sqlite:///{tmp_path / name}")) as database:
            upgrade(database, history)
        with closing(sqlite3.connect(tmp_path / name)) as file:
            rows = file.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
            statements.append({name: " ".join(sql.split()) for name, sql in rows})
    assert statements[0] == statements[1]


def test_the_ledger_of_an_earlier_commit_is_adopted_as_it_is(
    ledger: Ledger, ledger_url: str, database: Database
) -> None:
    publish(ledger, "one", ["c"])
    before = tables(database)
    forget_number(database)
    ledger.create()
    assert tables(database) == before
    with database.reading() as connection:
        assert LEDGER.revision(connection) == LEDGER.newest
    assert set(ledger.chunks.visible(["c"])) == {"c"}


def test_the_databases_of_commit_6253ab1_are_adopted(tmp_path: Path) -> None:
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / "ledger-6253ab1"
    for history in (LEDGER, CONVERSATIONS):
        file = folder / f"{history.name}.db"
        counts = []
        for _ in range(2):
            with closing(sqlite3.connect(file)) as rows:
                names = rows.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                    " AND name NOT LIKE '%_revision' AND name NOT LIKE 'sqlite_%' ORDER BY name"
                ).fetchall()
                counts.append(
                    {n: rows.execute(f"SELECT count(*) FROM {n}").fetchone()[0] for (n,) in names}
                )
            upgrade_url(f"sqlite:///{file}", history)
        new_tables = dict.fromkeys(counts[1].keys() - counts[0].keys(), 0)
        assert counts[0] | new_tables == counts[1]
        assert sum(counts[0].values()) > 0
    with closing(Database(f"sqlite:///{folder / 'ledger.db'}")) as adopted:
        assert differences(adopted) == []
    with closing(Ledger(f"sqlite:///{folder / 'ledger.db'}")) as ledger:
        ledger.create()
        assert [each.name for each, _ in ledger.collections.all()] == ["handbook", "offices"]


@pytest.mark.long
@pytest.mark.parametrize("revision", range(LEDGER.newest))
def test_each_revision_runs_over_data_while_searches_go_on(
    ledger: Ledger, ledger_url: str, database: Database, revision: int
) -> None:
    items = [publish(ledger, f"{n}", [f"c{n}"]) for n in range(3)]
    ids = [f"c{n}" for n in range(3)]
    before, seen = ledger.chunks.visible(ids), list[dict[str, str]]()
    if revision:
        run(database, f"UPDATE ledger_revision SET version_num = '{revision:04}'")
    else:
        forget_number(database)
    with ThreadPoolExecutor(1) as search:
        over = threading.Event()

        def look() -> None:
            while not over.is_set():
                seen.append(ledger.chunks.visible(ids))

        searching = search.submit(look)
        try:
            upgrade(database, LEDGER)
        finally:
            over.set()
        searching.result()
    assert all(each == before for each in seen)
    assert seen
    assert differences(database) == []
    assert ledger.documents.get(items[-1].document_id).state == "live"
    publish(ledger, "after", ["d"])
    with database.reading() as connection:
        assert LEDGER.revision(connection) == LEDGER.newest


def test_what_an_earlier_ledger_lacks_is_added(ledger: Ledger, database: Database) -> None:
    run(
        database,
        "INSERT INTO retrieval_events (trace_id, collection, tenant, profile_id, at, stamp,"
        " settings, hits, scores, basis) VALUES ('t', 'papers', '', 'p', 1, 's', '{}', '[]', '{}',"
        " '[[1]]')",
        "ALTER TABLE retrieval_events DROP COLUMN basis",
        "ALTER TABLE memory_places DROP COLUMN questions",
        "ALTER TABLE versions DROP COLUMN restores",
        "DROP INDEX events_that_change_a_corpus",
        "DROP TABLE attachments",
        "DROP TABLE traces",
    )
    forget_number(database)
    ledger.create()
    assert differences(database) == []
    with database.reading() as connection:
        rows = connection.execute(text("SELECT basis, scores FROM retrieval_events")).all()
        columns = {c["name"]: c for c in inspect(connection).get_columns("retrieval_events")}
    assert [json.loads(v) if isinstance(v, str) else v for v in rows[0]] == [[], {}]
    assert columns["basis"]["nullable"] is False
    assert columns["basis"]["default"] is None


def test_a_missing_column_that_nothing_can_fill_is_said(ledger: Ledger, database: Database) -> None:
    run(database, "ALTER TABLE steps DROP COLUMN state")
    forget_number(database)
    with pytest.raises(LedgerError, match=r"damaged: steps has no column 'state'"):
        ledger.create()


def test_a_ledger_of_another_schema_version_is_not_adopted(
    ledger: Ledger, database: Database
) -> None:
    run(database, "UPDATE about SET schema_version = 3")
    forget_number(database)
    with pytest.raises(SettingsError, match="schema version 3"):
        ledger.create()


def test_a_start_with_nothing_to_do_loads_no_alembic_and_writes_nothing(
    ledger: Ledger, ledger_url: str
) -> None:
    statements: list[str] = []
    again = Ledger(ledger_url)
    event.listen(
        again._database._writer,
        "before_cursor_execute",
        lambda _c, _cursor, statement, *_: statements.append(statement),
    )
    again.create()
    again.close()
    request = [each for each in statements if not each.startswith(("BEGIN", "ROLLBACK", "COMMIT"))]
    assert len(request) <= 4
    assert all(each.startswith(("SELECT", "PRAGMA")) for each in request)


def test_a_newer_ledger_is_refused_in_a_sentence(ledger: Ledger, database: Database) -> None:
    run(database, "UPDATE ledger_revision SET version_num = '0099'")
    with pytest.raises(LedgerError, match=r"has revision 0099, .* up to \d+") as raised:
        ledger.create()
    assert "newer Callslip" in raised.value.advice


def test_a_missing_table_is_said_at_the_start_and_at_its_first_use(
    ledger: Ledger, database: Database
) -> None:
    run(database, "DROP TABLE traces")
    with pytest.raises(LedgerError, match=r"no table 'traces'"):
        ledger.create()
    with pytest.raises(LedgerError, match=r"damaged: .*traces") as raised:
        ledger.searches.trace("t", keep_seconds=1.0)
    assert "back-up" in raised.value.advice


def test_a_missing_column_is_said_at_its_first_use(ledger: Ledger, database: Database) -> None:
    run(database, "ALTER TABLE retrieval_events DROP COLUMN basis")
    with pytest.raises(LedgerError, match=r"damaged: .*basis"):
        ledger.searches.get("t")


@pytest.mark.parametrize("content", [b"no database, but long enough" * 100, b"none" * 30])
def test_a_file_that_is_no_database_is_damaged(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "ledger.db"
    file.write_bytes(content)
    with (
        closing(Ledger(f"sqlite:///{file}")) as ledger,
        pytest.raises(LedgerError, match="damaged"),
    ):
        ledger.create()
    assert file.read_bytes() == content


def test_a_ledger_with_overwritten_pages_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    with closing(Ledger(f"sqlite:///{file}")) as ledger:
        ledger.create()
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("PRAGMA journal_mode=DELETE")
    whole = file.read_bytes()
    file.write_bytes(whole[:200] + b"\xff" * (len(whole) - 200))
    with (
        closing(Ledger(f"sqlite:///{file}")) as ledger,
        pytest.raises(LedgerError, match="damaged"),
    ):
        ledger.create()


REVISION = """
import os
from alembic import op

revision, down_revision = {revision!r}, {down!r}


def upgrade():
    op.execute("CREATE TABLE t{revision} (a INTEGER)")
    op.execute("INSERT INTO t{revision} VALUES (1)")
    if os.path.exists({kill!r}):
        os._exit(9)
    op.execute("CREATE TABLE u{revision} (a INTEGER)")
"""


def three_revisions(folder: Path) -> History:
    """Each makes two tables; the second dies between them while a file `kill` is there."""
    versions = folder / "versions"
    versions.mkdir(parents=True)
    (folder / "env.py").write_bytes((LEDGER.folder / "env.py").read_bytes())
    for number in (1, 2, 3):
        kill = str(folder / "kill") if number == 2 else ""
        down = f"{number - 1:04}" if number > 1 else None
        (versions / f"r{number:04}.py").write_text(
            REVISION.format(revision=f"{number:04}", down=down, kill=kill)
        )
    return History("ledger", "the ledger", folder, newest=3)


def _upgrade(url: str, history: History) -> None:
    with closing(Database(url)) as database:
        upgrade(database, history)


def _adopt(url: str, die_at: int) -> None:
    """Adopt a ledger, and die before the statement of this number."""
    database, executed = Database(url), 0

    def count(*_: object) -> None:
        nonlocal executed
        executed += 1
        if executed == die_at:
            os._exit(9)

    event.listen(database._writer, "before_cursor_execute", count)
    upgrade(database, LEDGER)
    os._exit(0)


def exit_codes(processes: int, target: Any, *args: object) -> list[int | None]:
    started = [CONTEXT.Process(target=target, args=args) for _ in range(processes)]
    for process in started:
        process.start()
    deadline = time.monotonic() + 200
    for process in started:
        process.join(max(0.0, deadline - time.monotonic()))
    codes = [process.exitcode for process in started]
    for process in started:
        process.kill()
    return codes


def test_an_upgrade_that_was_killed_goes_on_where_it_was(
    ledger_url: str, database: Database, tmp_path: Path
) -> None:
    history = three_revisions(tmp_path / "history")
    kill = history.folder / "kill"
    kill.touch()
    assert exit_codes(1, _upgrade, ledger_url, history) == [9]
    with database.reading() as connection:
        assert history.revision(connection) == 1
        assert set(inspect(connection).get_table_names()) == {"ledger_revision", "t0001", "u0001"}
    kill.unlink()
    upgrade(database, history)
    with database.reading() as connection:
        assert history.revision(connection) == 3
        assert connection.scalar(text("SELECT count(*) FROM t0002")) == 1


@pytest.mark.long
def test_an_adoption_that_is_killed_anywhere_is_done_by_the_next_start(
    ledger: Ledger, ledger_url: str, database: Database
) -> None:
    run(
        database,
        "ALTER TABLE retrieval_events DROP COLUMN basis",
        "DROP TABLE attachments",
        "DROP TABLE traces",
    )
    forget_number(database)
    for die_at in (4, 60, 100, 108):
        assert exit_codes(1, _adopt, ledger_url, die_at) == [9]
        with database.reading() as connection:
            assert LEDGER.revision(connection) == 0
    ledger.create()
    assert differences(database) == []


@pytest.mark.long
def test_many_processes_adopt_one_ledger_at_once(
    ledger: Ledger, ledger_url: str, database: Database
) -> None:
    run(database, "ALTER TABLE retrieval_events DROP COLUMN basis", "DROP TABLE traces")
    forget_number(database)
    assert exit_codes(4, _upgrade, ledger_url, LEDGER) == [0] * 4
    assert differences(database) == []
    with database.reading() as connection:
        rows = connection.execute(text("SELECT version_num FROM ledger_revision")).all()
    assert rows == [(f"{LEDGER.newest:04}",)]


def test_an_adopted_ledger_takes_new_work(ledger: Ledger, database: Database) -> None:
    forget_number(database)
    ledger.create()
    new = CollectionSchema("new", VectorSpec(4))
    ledger.collections.create(new, store="memory", embedder="tiny", analyzer="1")
    assert {each.name for each, _ in ledger.collections.all()} == {"papers", "new"}


def test_revisions_are_part_of_the_package() -> None:
    for history in (LEDGER, CONVERSATIONS):
        package = importlib.import_module(f"callslip.stores.ledger.migrations.{history.name}")
        assert Path(package.__path__[0]).resolve() == history.folder.resolve()
        assert (history.folder / "env.py").is_file()
