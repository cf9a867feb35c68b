"""`callslip ingest-faq` and `callslip compare` over an API in the same process."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from faq_server import FaqClient, running

from callslip.cli.commands.documents import faq as faq_command
from callslip.cli.commands.search import compare as compare_command
from callslip.cli.main import main
from callslip.errors import Overloaded, ServerDown

ROWS = [
    {"id": 1, "question": "0 same", "answer": "90 across"},
    {"id": 2, "question": "45 half", "answer": "0 여권"},
    {"id": "three", "question": "90 across", "answer": "45 half"},
]


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaqClient]:
    with running(tmp_path) as made:
        for module in (faq_command, compare_command):
            monkeypatch.setattr(module, "connect", lambda _: made)
        monkeypatch.setattr(faq_command.time, "sleep", lambda _: None)
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "help.json"
    path.write_text(json.dumps(ROWS))
    return path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def test_the_same_file_writes_only_what_changed(client: FaqClient, file: Path) -> None:
    first = call("ingest-faq", file, "-c", "help")
    assert first.exit_code == 0, first.output
    assert (
        "help__question: 3 new\nhelp__answer: 3 new\nhelp__question_answer: 3 new" in first.output
    )
    file.write_text(json.dumps([ROWS[0], ROWS[1] | {"answer": "7 other"}]))
    again = call("ingest-faq", file, "-c", "help", "--strategies", "answer, question")
    assert (
        "help__answer: 1 changed, 1 unchanged, 1 not in the file any more (--prune removes them)"
        in again.output
    )
    assert "help__question_answer" not in again.output
    pruned = call("ingest-faq", file, "-c", "help", "--prune", "--json")
    report = json.loads(pruned.output)
    assert (report["rows"], report["pruned"]) == (2, True)
    assert report["collections"]["help__question_answer"] == {
        "new": 0,
        "changed": 1,
        "unchanged": 1,
        "gone": 1,
    }
    kept = json.loads(call("ingest-faq", file, "-c", "help", "--json").output)
    assert [count["gone"] for count in kept["collections"].values()] == [0, 0, 0]


def test_many_rows_are_sent_in_turns(
    client: FaqClient, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faq_command, "BATCH", 2)
    monkeypatch.setattr(faq_command, "MOST_IDS", 1)
    client.failures = [Overloaded("busy"), ServerDown("restarting")]
    report = json.loads(call("ingest-faq", file, "--strategies", "answer", "--json").output)
    assert report["collections"] == {
        "faq__answer": {"new": 3, "changed": 0, "unchanged": 0, "gone": 0}
    }
    assert client.posts == 4
    file.write_text(json.dumps(ROWS[:1]))
    report = json.loads(
        call("ingest-faq", file, "--strategies", "answer", "--prune", "--json").output
    )
    assert report["collections"]["faq__answer"]["gone"] == 2
    assert client.get("/v1/faq/faq") == {"collections": {"faq__answer": [1]}}


def test_a_server_that_stays_away_ends_with_how_far_it_came(
    client: FaqClient, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faq_command, "BATCH", 1)
    monkeypatch.setattr(faq_command, "PATIENCE_SECONDS", 0)
    answered = client.post

    def post(path: str, body: dict[str, Any]) -> Any:
        if client.posts == 2:
            raise ServerDown("no answer")
        return answered(path, body)

    monkeypatch.setattr(client, "post", post)
    ended = call("ingest-faq", file)
    assert ended.exit_code == 1
    assert "2 of 3 rows are in; the same command goes on from there." in ended.output


def test_nothing_is_sent_where_anything_is_wrong(client: FaqClient, file: Path) -> None:
    file.write_text(json.dumps([*ROWS, {"id": 4, "question": "q", "answer": " "}]))
    wrong = call("ingest-faq", file)
    assert wrong.exit_code == 1
    assert "row 4: answer: is empty" in wrong.output
    assert call("ingest-faq", file, "--strategies", "title").exit_code == 2
    assert call("ingest-faq", file, "--strategies", "").exit_code == 2
    assert call("ingest-faq", file, "-c", "a b").exit_code == 2
    assert call("ingest-faq", file, "-c", "a" * 60).exit_code == 1
    assert call("ingest-faq", file.with_name("none.json")).exit_code == 2
    assert client.posts == 0


def test_what_is_passed_over_is_told(client: FaqClient, file: Path) -> None:
    file.write_text(json.dumps([row | {"kind": "x"} for row in ROWS]))
    assert "Passed over: kind" in call("ingest-faq", file).output


def test_collections_are_compared(client: FaqClient, file: Path) -> None:
    call("ingest-faq", file)
    all_ = call("compare", "0 what")
    assert all_.exit_code == 0, all_.output
    lines = [line.strip() for line in all_.output.splitlines()]
    assert lines[:3] == ["faq__question", "1. 1.0000  faq_1", "0 same"]
    assert {"faq__answer", "faq__question_answer"} <= set(lines)
    some = call("compare", "0 what", "-c", "faq__answer", "-n", 1, "--threshold", 0.5, "--json")
    found = json.loads(some.output)
    assert list(found["collections"]) == ["faq__answer"]
    assert [h["id"] for h in found["merged"]] == ["faq_2"]
    merged = call("compare", "0 what", "--merged", "-n", 2)
    assert "1. 1.0000  faq_1  faq__question" in merged.output
    assert merged.output.startswith("Merged from faq__question, faq__answer")
    listed = json.loads(call("compare", "0 what", "--merged", "--json").output)
    assert [h["id"] for h in listed][:2] == ["faq_1", "faq_2"]
    assert "nothing found" in call("compare", "180 x", "-c", "faq__answer", "--threshold", 1).output


def test_a_passage_that_is_no_row_has_its_title_and_heading(
    client: FaqClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    hit = {
        "id": "c" * 32,
        "text": "Leave lasts 90 days.",
        "metadata": {"year": 2026},
        "similarity": 0.9,
        "collection_name": "papers",
        "title": "Leave policy",
        "heading": "Parents",
    }
    monkeypatch.setattr(client, "request_json", lambda *_, **__: {"collections": {"papers": [hit]}})
    output = call("compare", "leave", "-c", "papers").output
    assert output == "papers\n 1. 0.9000  Leave policy  Parents\n    Leave lasts 90 days.\n\n"


def test_what_is_not_there_is_an_error_with_what_to_do(client: FaqClient) -> None:
    missing = call("compare", "0 what")
    assert missing.exit_code == 1
    assert "there is no FAQ 'faq'" in missing.output
    assert "callslip ingest-faq" in missing.output
    assert call("compare", "0 what", "-c", "none").exit_code == 1
    assert call("compare", "0 what", "-c", "a b").exit_code == 2


def test_few_long_rows_are_sent_at_once(client: FaqClient, file: Path) -> None:
    rows = [row | {"answer": f"9 {'x' * 14_000}"} for row in ROWS]
    file.write_text(json.dumps(rows))
    assert call("ingest-faq", file, "--strategies", "answer").exit_code == 0
    assert client.posts == 2
