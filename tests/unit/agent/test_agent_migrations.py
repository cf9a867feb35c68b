"""The tables of conversations have numbered revisions, and are those that LangGraph works with."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from sqlalchemy import text

from callslip.agent.conversations import Threads, make_saver
from callslip.errors import LedgerError
from callslip.stores.ledger import Ledger
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.migrations.history import CONVERSATIONS, upgrade_url

pytest_plugins = ["ledger_fixtures"]

REVISION = "conversations_revision"


@pytest.fixture
def langgraph(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A file that LangGraph made, as before revision 1."""
    with closing(sqlite3.connect(tmp_path / "conversations.db")) as connection:
        SqliteSaver(connection).setup()
        yield connection


def statements(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    squeezed = {name: "".join(sql.replace("IF NOT EXISTS", "").split()) for name, sql in rows}
    squeezed.pop(REVISION, None)
    return squeezed


def numbers(connection: sqlite3.Connection) -> list[Any]:
    return connection.execute(f"SELECT version_num FROM {REVISION}").fetchall()


def test_the_tables_are_those_of_langgraph(langgraph: sqlite3.Connection, tmp_path: Path) -> None:
    saver: Any = make_saver("sqlite://", tmp_path / "new")
    with closing(saver.conn) as new:
        assert statements(new) == statements(langgraph)
        assert numbers(new) == [("0001",)]


def test_conversations_of_an_earlier_commit_are_adopted(
    langgraph: sqlite3.Connection, tmp_path: Path
) -> None:
    langgraph.execute(
        "INSERT INTO checkpoints (thread_id, checkpoint_id, checkpoint) VALUES ('t', '1', x'00')"
    )
    langgraph.execute("ALTER TABLE writes DROP COLUMN task_path")
    langgraph.commit()
    for _ in range(2):
        saver: Any = make_saver("sqlite://", tmp_path)
        with closing(saver.conn) as adopted:
            assert adopted.execute("SELECT thread_id FROM checkpoints").fetchall() == [("t",)]
            adopted.execute("SELECT task_path FROM writes")
            assert numbers(adopted) == [("0001",)]


def test_conversations_beside_the_ledger_are_numbered_on_every_database(
    ledger: Ledger, ledger_url: str, tmp_path: Path
) -> None:
    saver: Any = make_saver(ledger_url, tmp_path)
    with closing(saver.conn):
        url = ledger_url
        if url.startswith("sqlite"):
            url = f"sqlite:///{tmp_path / 'conversations.db'}"
        upgrade_url(url, CONVERSATIONS)
        with closing(Database(url)) as database, database.reading() as connection:
            assert connection.scalar(text(f"SELECT version_num FROM {REVISION}")) == "0001"


def test_the_steps_of_the_checkpointer_in_postgresql_are_all_in_a_revision() -> None:
    base = pytest.importorskip("langgraph.checkpoint.postgres.base")
    from callslip.stores.ledger.migrations.conversations.versions import (
        r0001_tables_before_revisions as first,
    )

    def words(statement: str) -> str:
        return " ".join(statement.replace("CONCURRENTLY ", "").replace(";", "").split())

    theirs = [words(each) for each in base.MIGRATIONS]
    ours = [words(each) for each in first._POSTGRESQL]
    for mine, its in zip(ours, theirs, strict=True):
        assert mine.replace(" ", "") == its.replace(" ", "")


@pytest.mark.parametrize("damage", ["newer", "no database"])
def test_what_cannot_be_worked_with_is_said(damage: str, tmp_path: Path) -> None:
    file = tmp_path / "conversations.db"
    if damage == "newer":
        upgrade_url(f"sqlite:///{file}", CONVERSATIONS)
        with closing(sqlite3.connect(file)) as database:
            database.execute(f"UPDATE {REVISION} SET version_num = '0099'")
            database.commit()
    else:
        file.write_bytes(b"none" * 100)
    with pytest.raises(LedgerError, match=r"the database of conversations (has|is)"):
        make_saver("sqlite://", tmp_path)


def test_a_table_that_goes_while_it_is_used_is_said(ledger: Ledger, tmp_path: Path) -> None:
    saver: Any = make_saver("sqlite://", tmp_path)
    with closing(saver.conn) as connection:
        threads = Threads(saver, ledger.conversations)
        threads.open("papers", "", "t")
        connection.execute("DROP TABLE checkpoints")
        with pytest.raises(LedgerError, match="no such table: checkpoints"):
            threads.turns("papers", "", "t")
