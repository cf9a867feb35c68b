"""A data folder that cannot be worked with is refused in one sentence with advice."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from callslip.cli.main import main
from callslip.stores.ledger import Ledger

ALL = ["up", "run ingest", "source list"]


def fill(folder: Path, *statements: str) -> Path:
    """Make a ledger and change it."""
    file = folder / "ledger.db"
    with closing(Ledger(f"sqlite:///{file}")) as ledger:
        ledger.create()
    with closing(sqlite3.connect(file)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
    return file


def newer(folder: Path) -> None:
    fill(folder, "UPDATE ledger_revision SET version_num = '0042'")


def without_a_table(folder: Path) -> None:
    fill(folder, "DROP TABLE traces")


def no_database(folder: Path) -> None:
    (folder / "ledger.db").write_bytes(b"none" * 100)


def empty_run_file(folder: Path) -> None:
    (folder / "run.json").touch()


@pytest.mark.parametrize(
    ("damage", "sentence", "advice", "commands"),
    [
        (newer, "the ledger has revision 0042", "newer Callslip", ALL),
        (without_a_table, "the ledger is damaged: it has no table 'traces'", "back-up", ALL),
        (no_database, "the ledger is damaged: file is not a database", "back-up", ALL),
        (empty_run_file, "is empty or damaged", "ends what is left", ["source list"]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_cannot_be_worked_with_is_said_in_a_sentence(
    damage: object,
    sentence: str,
    advice: str,
    commands: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CALLSLIP_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("CALLSLIP_BROKER__URL", "redis://127.0.0.1:1")
    monkeypatch.setenv("CALLSLIP_API__PORT", "0")  # another Callslip may have the usual one
    monkeypatch.setattr("os.execve", lambda *_: pytest.fail("nothing may be started"))
    damage(tmp_path)  # type: ignore[operator]
    for command in commands:
        result = CliRunner().invoke(main, command.split())
        assert result.exit_code == 1
        assert isinstance(result.exception, SystemExit)
        text = " ".join(result.output.split())
        assert sentence in text
        assert advice in text
        assert "Traceback" not in text
