"""The write-ahead logs of SQLite files, which are emptied."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from callslip.config.settings import Settings
from callslip.stores.sqlite_logs import empty_logs


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path)


def opened(path: Path) -> sqlite3.Connection:
    """A connection to a new file with a log that has content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE t (x)")
    connection.execute("INSERT INTO t VALUES (zeroblob(100000))")
    connection.commit()
    return connection


def test_logs_of_files_in_use_are_emptied_once_and_nothing_is_lost(
    tmp_path: Path, settings: Settings
) -> None:
    paths = tmp_path / "ledger.db", tmp_path / "keyword" / "c" / "terms.db"
    with closing(opened(paths[0])) as first, closing(opened(paths[1])) as second:
        logs = [path.with_name(f"{path.name}-wal") for path in paths]
        assert all(log.stat().st_size > 100_000 for log in logs)
        assert empty_logs(settings, quiet_seconds=60) == 0
        assert empty_logs(settings) == 2
        assert [log.stat().st_size for log in logs] == [0, 0]
        assert empty_logs(settings) == 0
        for connection in (first, second):
            connection.execute("INSERT INTO t VALUES (1)")
            connection.commit()
    for path in paths:
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_a_log_stays_while_a_transaction_needs_it(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callslip.stores.sqlite_logs.BUSY_SECONDS", 0.01)
    path = tmp_path / "ledger.db"
    with closing(opened(path)) as writer, closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t").fetchone()
        writer.execute("INSERT INTO t VALUES (1)")
        writer.commit()
        assert empty_logs(settings) == 0
        reader.rollback()
        assert empty_logs(settings) == 1


def test_a_file_that_is_no_database_stays_and_is_named(
    tmp_path: Path, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "other.db").write_bytes(b"no database" * 100)
    (tmp_path / "other.db-wal").write_bytes(b"x")
    (tmp_path / "gone.db-wal").write_bytes(b"x")
    assert empty_logs(settings) == 0
    assert "other.db-wal" in caplog.text
    assert "gone.db-wal" in caplog.text
