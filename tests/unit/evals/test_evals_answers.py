"""Outcomes of answers, against a server that answers with the passages that share a word."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from fake_server import FakeServer

from benchmarks.quality import judged_collections
from benchmarks.quality.answer_tables import (
    Outcome,
    calibration_row,
    counts,
    curve_row,
    threshold_rows,
)
from benchmarks.quality.answers import ask_all, halved, main, of_file, of_judged_set
from benchmarks.quality.questions import Question
from callslip.cli.shared.upload import Report
from callslip.config.sections.agent import AgentSettings
from callslip.evals import beir, judge

CORPUS = {"a": "ten days of leave", "b": "two cats", "c": "one fish"}
QUERIES = {"q1": "days", "q2": "cats", "q3": "fish"}


class Answering(FakeServer):
    """Answers with the first document that has a word of the question, from .75 on."""

    def __init__(self) -> None:
        super().__init__()
        self.confidence: dict[str, float] = {}
        self.reason = "not-apart"
        self.least = 0.75
        self.options: list[str] = []

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path != "/v1/answer":
            return super().post(path, body)
        confidence = self.confidence.get(body["question"], 0.95)
        cited = [
            {"document_id": name, "quote": " ".join(text.split()[:2]), "passage": {**span}}
            for name, text, span in self._passages(body["question"])
        ]
        answered = bool(cited) and confidence >= self.least
        reason = "no-passages" if not cited else "supported" if answered else self.reason
        return {
            "answered": answered,
            "text": f"{cited[0]['quote']} (in force since 2021). [1]" if answered else "None.",
            "sentences": [{"text": f"{cited[0]['quote']}."}] if answered else [],
            "citations": cited if answered else [],
            "nearest": [] if answered else cited,
            "verdict": {"confidence": confidence if cited else 0.0, "reason": reason},
        }

    def _passages(self, question: str) -> list[tuple[str, str, dict[str, int]]]:
        hits = self._found({"query": question, "top": 1})["hits"]
        texts = {hit["document_id"]: self.documents[hit["document_id"]]["text"] for hit in hits}
        return [(name, text, {"start": 0, "end": len(text)}) for name, text in texts.items()]

    def get(self, path: str, **params: str | int | float) -> dict[str, Any]:
        if not path.endswith("/text"):
            return super().get(path, **params)
        text: str = self.documents[path.split("/")[3]]["text"]
        return {"text": text[int(params["start"]) : int(params["end"])]}

    def put(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.options.append(path)
        return body


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Answering:
    made = Answering()
    monkeypatch.setattr(judge, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(judged_collections, "JsonClient", lambda url, key: made)
    return made


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """A judged set, of which documents `b` and `c` are the removed half."""
    return write(tmp_path / "pets", {})


def write(folder: Path, metadata: dict[str, Any]) -> Path:
    folder.mkdir()
    corpus = [{"_id": name, "text": text} for name, text in CORPUS.items()]
    queries = [{"_id": n, "text": text, "metadata": metadata} for n, text in QUERIES.items()]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (folder / "qrels.tsv").write_text("q1\ta\t1\nq2\tb\t1\nq3\tc\t1\n")
    return folder


def outcome(confidence: float, *, right: bool = True, **more: Any) -> Outcome:
    fields: dict[str, Any] = {
        "question": "?",
        "answerable": True,
        "answered": confidence >= 0.75,
        "confidence": confidence,
        "at_no_threshold": False,
        "right": right,
        "quoted": right,
    }
    return Outcome(**fields | more)


OUTCOMES = (
    outcome(0.95),
    outcome(0.9, right=False),
    outcome(0.8, quoted=False),
    outcome(0.5),
    outcome(0.99, answered=False, at_no_threshold=True),
    outcome(0.76, right=False, answerable=False),
    outcome(0.2, right=False, answerable=False),
)


def test_the_counts_are_of_what_can_be_answered_and_what_cannot() -> None:
    row = ["s", "7", "5", "2 (.400)", "1 (.200)", "1 (.200)", "2 (.400)", "2", "1 (.500)"]
    assert counts("s", OUTCOMES) == row
    assert counts("s", [outcome(0.8, quoted=None)])[4] == "–"
    assert counts("s", OUTCOMES[:1])[-2:] == ["0", "–"]


def test_what_no_threshold_answers_comes_last_on_the_curve() -> None:
    row = curve_row("s", OUTCOMES)
    risks = (0, 1 / 2, 1 / 3, 2 / 4, 2 / 5, 3 / 6, 3 / 7)
    assert row[1] == f"{sum(risks) / 7:.3f}".removeprefix("0")
    assert row[3:] == [".143", ".143", ".143", ".500", ".500", ".500", ".429"]


def test_a_threshold_has_coverage_risk_and_both_shares() -> None:
    rows = {row[1]: row[2:] for row in threshold_rows("s", OUTCOMES)}
    assert rows["0.9"] == [".286", ".500", ".200", ".000"]
    assert rows["0.5"] == [".714", ".400", ".600", ".500"]
    assert f"{AgentSettings().confidence_threshold:g}" in rows


def test_the_words_of_certainty_count_answers_alone() -> None:
    assert calibration_row("s", OUTCOMES)[2:] == ["2 of 3 (.667)", "0 of 1 (.000)"]
    assert calibration_row("s", [outcome(0.5)])[1:] == [".500", "0 of 0", "0 of 0"]


def test_a_refusal_is_judged_by_the_nearest_passage(client: Answering) -> None:
    client.documents = {"d": {"text": "ten days of leave"}}
    client.confidence = {"days": 0.6}
    judged = of_file([Question(question="days", says=["leave"])])
    (refused,) = ask_all(client, "c", judged)
    assert (refused.answered, refused.score, refused.right) == (False, 0.6, False)
    client.confidence = {"days": 0.8}
    (answered,) = ask_all(client, "c", of_file([Question(question="days", pattern="^ten days")]))
    assert (answered.answered, answered.right, answered.quoted) == (True, True, True)


def test_the_date_and_the_mark_that_an_answer_adds_to_a_sentence_are_no_answer(
    client: Answering,
) -> None:
    client.documents = {"d": {"text": "ten days of leave"}}
    asking = of_file([Question(question="days", pattern=each) for each in ("2021", "1", "days.$")])
    assert [each.right for each in ask_all(client, "c", asking)] == [False, False, True]


def test_a_threshold_above_that_of_the_server_refuses(client: Answering) -> None:
    client.documents, client.least = {"d": {"text": "ten days"}}, 0.0
    client.confidence = {"days": 0.6}
    asking = of_file([Question(question="days", says=["ten"])])
    assert [ask_all(client, "c", asking, least)[0].name for least in (0.5, 0.75)] == [
        *("right", "refused")
    ]


def test_a_refusal_for_another_reason_is_answered_at_no_threshold(client: Answering) -> None:
    client.documents, client.reason = {"d": {"text": "ten days"}}, "not-grounded"
    client.confidence = {"days": 0.6}
    asking = of_file([Question(question="days", says=[]), Question(question="cats", says=[])])
    assert [(o.score, o.name) for o in ask_all(client, "c", asking)] == [(0, "rightly refused")] * 2


def test_a_set_is_measured_without_half_of_its_answers(
    pets: Path, client: Answering, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert halved(beir.read(pets))[1] == {"q1"}
    curves = tmp_path / "curves.csv"
    assert main([str(pets), "--curves", str(curves), "--misses"]) == 0
    written = capsys.readouterr()
    assert "| pets | 3 | 1 | 1 (1.000) | – | 0 (.000) | 0 (.000) | 2 | 0 (.000) |" in written.out
    assert "| pets | .017 | 1 of 1 (1.000) | 0 of 0 |" in written.out
    assert "wrong" not in written.err
    assert len(client.dropped) == len(client.options) == 1
    with curves.open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["set", "threshold", "coverage", "risk"],
            ["pets", "0.95", str(1 / 3), "0.0"],
            ["pets", "0.0", "1.0", str(2 / 3)],
        ]


def test_the_words_of_the_answer_may_be_in_the_passage_and_not_in_the_quote(
    tmp_path: Path, client: Answering
) -> None:
    folder = write(tmp_path / "words", {"answers": ["leave"]})
    client.documents = {"d": {"text": "ten days of leave"}}
    asking = of_judged_set(client, beir.read(folder), {"q1"}, {"d": "b"})
    (first, *_) = ask_all(client, "c", asking)
    assert (first.name, first.quoted) == ("right", False)


def test_a_file_of_questions_is_asked_in_an_existing_collection_as_it_is(
    tmp_path: Path, client: Answering, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "files").mkdir()
    lines = [{"question": "days", "says": ["ten"]}, {"question": "ten", "says": []}]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    client.documents = {"d": {"text": "ten days"}}
    assert main([str(tmp_path), "--collection", "mine", "--misses"]) == 0
    written = capsys.readouterr()
    name = tmp_path.name
    row = f"| {name} | 2 | 1 | 1 (1.000) | 1 (1.000) | 0 (.000) | 0 (.000) | 1 | 1 (1.000) |"
    assert row in written.out
    assert f"{name}: wrongly answered: ten" in written.err
    assert client.options == client.dropped == []
    assert main([str(tmp_path), "--collection", "mine", "--queries", "1"]) == 0
    assert f"| {name} | 1 | 1 |" in capsys.readouterr().out


def test_files_go_into_a_scratch_collection(
    tmp_path: Path,
    client: Answering,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("ten days")
    (tmp_path / "questions.jsonl").write_text('{"question": "days", "says": ["ten"]}')

    def ingest(server: object, collection: str, sources: list[Any], **more: object) -> Any:
        client.documents["d"] = {"text": sources[0].path.read_text()}
        failed = [{"name": "b.bin", "detail": "it has no text."}]
        return Report(live=["a.txt"], failed=failed)

    monkeypatch.setattr(judged_collections, "ingest", ingest)
    assert main([str(tmp_path)]) == 0
    written = capsys.readouterr().out
    assert "1 files are not ingested, such as 'b.bin' (it has no text.)" in written
    assert len(client.dropped) == len(client.options) == 1


def test_sets_share_a_row_of_calibration(
    pets: Path, tmp_path: Path, client: Answering, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(pets), str(tmp_path / "gone"), str(pets)]) == 1
    written = capsys.readouterr().out
    assert "| all | .017 | 2 of 2 (1.000) | 0 of 0 |" in written
    assert "- gone: not measured: " in written


def test_a_collection_with_the_removed_documents_is_refused(
    pets: Path, client: Answering, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = beir.read(pets)
    judge.completed(client, "whole", judged)
    assert main([str(pets), "--collection", "whole"]) == 1
    assert "2 documents that are removed from the set are live" in capsys.readouterr().out
