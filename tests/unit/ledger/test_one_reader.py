"""Reads of a thread that share one connection."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text

from callslip.errors import StoreDown
from callslip.stores.ledger.base.database import Database

_COUNT = text("SELECT count(*) FROM numbers")


@pytest.fixture
def database(tmp_path: Path) -> Database:
    database = Database(f"sqlite:///{tmp_path}/ledger.db")
    with database.writing() as connection:
        connection.execute(text("CREATE TABLE numbers (number INTEGER)"))
    return database


def test_reads_in_a_block_share_a_connection_and_see_what_was_written_meanwhile(
    database: Database,
) -> None:
    with database.one_reader(), database.one_reader():
        with database.reading() as first:
            assert first.scalar(_COUNT) == 0
        with database.writing() as writer:
            writer.execute(text("INSERT INTO numbers VALUES (1)"))
        with database.reading() as second:
            assert second is first
            assert second.scalar(_COUNT) == 1
    with database.reading() as third:
        assert third is not first
    database.close()


def test_after_an_error_the_next_read_has_another_connection(database: Database) -> None:
    with database.one_reader():
        with pytest.raises(StoreDown), database.reading() as broken:
            raise sqlite3.OperationalError("disk I/O error")
        with database.reading() as another:
            assert another is not broken
            assert another.scalar(_COUNT) == 0
    database.close()
