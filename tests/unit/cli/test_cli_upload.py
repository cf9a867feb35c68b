"""What an ingestion prints about files that were not sent."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from callslip.cli.shared import upload
from callslip.cli.shared.paths import find_files
from callslip.errors import ServerDown

FOLLOW = "What was sent goes on: callslip status --batch b1\n"


class Client:
    """A server that takes some files and then fails, or fails when it lists the batch."""

    def __init__(self, taken: int, error: BaseException) -> None:
        self.left, self.error = taken, error

    def create_collection(self, *_: Any, **__: Any) -> None:
        pass

    def create_batch(self, *_: Any, **__: Any) -> SimpleNamespace:
        return SimpleNamespace(batch_id="b1")

    def list_unchanged(self, *_: Any, **__: Any) -> SimpleNamespace:
        return SimpleNamespace(documents=["a.md"])

    def upload(self, *_: Any, **more: Any) -> SimpleNamespace:
        self.left -= 1
        if self.left < 0:
            raise self.error
        return SimpleNamespace(document_id=more["name"], version=1)

    def list_batch_documents(self, *_: Any, **__: Any) -> None:
        raise self.error


@pytest.mark.parametrize("error", [ServerDown("no answer"), KeyboardInterrupt()])
@pytest.mark.parametrize(
    ("taken", "said"),
    [
        (0, "3 files not sent: the same command sends them.\n"),
        (2, "1 file not sent: the same command sends them.\n"),
        (3, ""),
    ],
)
def test_an_ingestion_that_ends_early_says_how_it_goes_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    taken: int,
    said: str,
) -> None:
    for name in "abcd":
        (tmp_path / f"{name}.md").write_text(name)
    batch = {"submitted": 0, "states": {}, "left": 0}
    monkeypatch.setattr(upload, "get_batch", lambda *_: batch)
    monkeypatch.setattr(upload, "pace", lambda _: "")
    client: Any = Client(taken, error)
    with pytest.raises(type(error)):
        upload.ingest(client, "main", find_files([str(tmp_path)]), show_bar=False)
    assert capsys.readouterr().err == said + (FOLLOW if taken else "")


def test_a_file_whose_name_is_not_utf8_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.md")).write_text("Coffee")
    (tmp_path / "tea.md").write_text("Tea")
    batch = {"submitted": 0, "states": {}, "left": 0}
    monkeypatch.setattr(upload, "get_batch", lambda *_: batch)
    monkeypatch.setattr(upload, "pace", lambda _: "")
    monkeypatch.setattr(upload, "batch_documents", lambda *_: [])
    client: Any = Client(1, AssertionError("one file is sent"))
    report = upload.ingest(client, "main", find_files([str(tmp_path)]), show_bar=False)
    assert [(f["detail"], f["advice"]) for f in report.failed] == [
        (r"'caf\udce9.md' is not a name in UTF-8", "Rename the file.")
    ]


def test_a_line_a_minute_replaces_the_bar_where_the_output_is_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tea.md").write_text("Tea")
    reports = iter((1, 0, 0))

    def batch(*_: object) -> dict[str, Any]:
        left = next(reports)
        return {"submitted": 1, "states": {"working": left} if left else {}, "left": left}

    monkeypatch.setattr(upload, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(upload, "get_batch", batch)
    monkeypatch.setattr(upload, "pace", lambda b: "about 2 min left" if b["left"] else "")
    monkeypatch.setattr(upload, "batch_documents", lambda *_: [])
    client: Any = Client(1, AssertionError("one file is sent"))
    upload.ingest(client, "main", find_files([str(tmp_path)]))
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["0 of 1 document, about 2 min left", "1 of 1 document"]
