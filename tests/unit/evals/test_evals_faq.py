"""Measuring an FAQ, by strategy and merged."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faq_server import FaqClient, running

from benchmarks.quality import faq, judged_collections

CORPUS = [
    {"_id": "a", "title": "0 what", "text": "40 because"},
    {"_id": "b", "title": "20 where", "text": "0 there"},
    {"_id": "c", "title": "80 when", "text": "80 then"},
]

QRELS = {"first": "a", "second": "b"}


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaqClient]:
    with running(tmp_path) as made:
        monkeypatch.setattr(judged_collections, "JsonClient", lambda *_, **__: made)
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "set"
    folder.mkdir()
    queries = [{"_id": query, "text": "0 asked"} for query in QRELS]
    for name, lines in (("corpus", CORPUS), ("queries", queries)):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text)
    judged = "".join(f"{query}\t{row}\t1\n" for query, row in QRELS.items())
    (folder / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return folder


def test_each_strategy_and_all_together_are_measured(
    client: FaqClient, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert faq.main([str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    cells = {line.split(" | ")[0].strip("| "): line.split(" | ")[1:6] for line in lines}
    assert "3 rows, 2 queries" in lines[0]
    assert cells["question"] == [".500", "1.000", "1.000", ".750", ".815"]
    assert cells["answer"] == [".500", "1.000", "1.000", ".750", ".815"]
    assert cells["merged"][1] == "1.000"
    assert client.get("/v1/collections") == {"collections": []}


def test_kept_collections_stay_and_what_cannot_be_measured_is_said(
    client: FaqClient, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert faq.main([str(folder), "--keep", "--queries", "1"]) == 0
    kept: Any = client.get("/v1/collections")["collections"]
    assert len(kept) == len(faq.STRATEGIES)
    (folder / "corpus.jsonl").write_text(json.dumps({"_id": "a", "title": "", "text": "x"}) + "\n")
    assert faq.main([str(folder)]) == 1
    assert "without a title or a text" in capsys.readouterr().err
