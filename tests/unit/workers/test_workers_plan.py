"""The processes of `callslip up` depend on nothing in the folder where it was started."""

import os
from pathlib import Path

import pytest

from callslip.config.load import load
from callslip.models.e5.runtimes.background import BACKGROUND
from callslip.workers.supervision import forking
from callslip.workers.supervision.plan import plan


@pytest.mark.parametrize("niceness", [9, 10])
def test_the_embedder_of_the_ingest_worker_alone_computes_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, niceness: int
) -> None:
    monkeypatch.setenv("CALLSLIP_INGEST__NICENESS", str(niceness))
    monkeypatch.setenv("CALLSLIP_AGENT__NICENESS", "19")
    _, parts = plan(load().settings, tmp_path)
    waiting = [part.name for part in parts if BACKGROUND in part.env]
    assert waiting == (["ingest"] if niceness == 10 else [])


def test_no_part_runs_in_the_folder_of_the_user_or_reads_settings_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("CALLSLIP_TEST_"):  # of the suite itself
            monkeypatch.delenv(name)
    (tmp_path / "key").write_text("a-secret-key")
    (tmp_path / "callslip.yaml").write_text("blobs: { url: originals }\n")
    monkeypatch.setenv("CALLSLIP_API__KEY_FILE", "key")
    monkeypatch.setenv("CALLSLIP_LEDGER__URL", "sqlite:///mine.db")
    monkeypatch.setenv("CALLSLIP_TFIDF__FOLDER", "words")
    monkeypatch.setenv("CALLSLIP_ANNOTATOR__DOCUMENTS", "a.txt, https://example.org/b.txt")
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    _, parts = plan(load().settings, data_dir)
    assert {part.cwd for part in parts} == {data_dir / "cwd"}
    assert {part.env["PYTHONSAFEPATH"] for part in parts} == {"1"}
    assert (data_dir / "cwd").stat().st_mode & 0o777 == 0o700
    api = next(part for part in parts if part.name == "api").env
    assert "CALLSLIP_API__KEY_FILE" not in api
    assert api["MALLOC_ARENA_MAX"] == "2"
    assert api["CALLSLIP_API__KEY"] == "a-secret-key"
    assert api["CALLSLIP_BLOBS__URL"] == str(tmp_path / "originals")
    assert api["CALLSLIP_LEDGER__URL"] == f"sqlite:///{tmp_path / 'mine.db'}"
    assert api["CALLSLIP_TFIDF__FOLDER"] == str(tmp_path / "words")
    documents = f"{tmp_path / 'a.txt'},https://example.org/b.txt"
    assert api["CALLSLIP_ANNOTATOR__DOCUMENTS"] == documents
    assert os.environ["CALLSLIP_API__KEY_FILE"] == "key"
    if forking.is_supported():
        server = next(part for part in parts if part.name == "forkserver")
        assert not any(name.startswith("CALLSLIP_") for name in server.env)
        forked = {part.name for part in parts if part.forks}
        assert forked == {"ingest", "search", "answer", "maintenance", "api"}
        assert all("forkserver" in part.after for part in parts if part.forks)
