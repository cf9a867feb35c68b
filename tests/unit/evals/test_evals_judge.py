"""Measuring a judged set, against answers that no real server gives on demand."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from fake_server import FakeServer

from callslip.errors import CollectionExists, EvaluationError, SearchTimeout, ServerDown
from callslip.evals import beir, client, judge
from callslip.evals import run as eval_run
from callslip.evals.client import JsonClient
from callslip.evals.judge import Progress, evaluate, scratch_name
from callslip.evals.report import table


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "POLL_SECONDS", 0.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    corpus = [
        {"_id": "a", "title": "Leave", "text": "ten days", "metadata": {"year": 2024, "x": {}}},
        {"_id": "b.pdf", "text": "two cats", "metadata": {"title": "hides a field", "ok": [1, 2]}},
    ]
    queries = [{"_id": "q1", "text": "days"}, {"_id": "q2", "text": "dogs"}]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (tmp_path / "qrels.tsv").write_text("q1\ta\t1\nq2\tb.pdf\t1\n")
    return tmp_path


def test_the_report_has_the_agreed_shape(folder: Path) -> None:
    report = evaluate(folder, FakeServer()).as_json()
    half = {"ndcg@10": 0.5, "recall@10": 0.5, "recall@100": 0.5, "mrr@10": 0.5}
    assert list(report)[:5] == ["set", "documents", "queries", "legs", "seconds"]
    assert report["set"] == folder.name
    assert (report["documents"], report["queries"]) == (2, 2)
    assert report["legs"] == {"keyword": half, "vector": half, "hybrid": half}


def test_documents_go_in_as_title_and_text_with_their_metadata(folder: Path) -> None:
    server = FakeServer()
    evaluate(folder, server)
    assert server.documents["id of a.txt"] == {
        "name": "a.txt",
        "title": "Leave",
        "text": "Leave\nten days",
        "properties": {"year": 2024},
        "allow_duplicate": True,
    }
    assert server.documents["id of b.pdf.txt"]["properties"] == {"ok": [1, 2]}


def test_progress_reaches_the_end_of_every_phase(folder: Path) -> None:
    output: list[Progress] = []
    evaluate(folder, FakeServer(), on_progress=output.append)
    last = {progress.phase: (progress.done, progress.total) for progress in output}
    assert last == {"ingest": (2, 2), "keyword": (2, 2), "vector": (2, 2), "hybrid": (2, 2)}


def test_the_scratch_collection_is_dropped(folder: Path) -> None:
    server = FakeServer()
    evaluate(folder, server, collection="scratch")
    assert server.dropped == ["/v1/collections/scratch"]


def test_the_scratch_collection_is_kept_on_request_and_named(folder: Path) -> None:
    server = FakeServer()
    report = evaluate(folder, server, collection="scratch", keep=True)
    assert server.dropped == []
    assert report.as_json()["collection"] == "scratch"
    assert "Kept as collection scratch." in table(report)


def test_a_collection_that_cannot_be_dropped_is_named(folder: Path) -> None:
    server = FakeServer()
    server.can_drop = False
    report = evaluate(folder, server, collection="scratch")
    assert "the scratch collection scratch was not dropped (no such route)" in report.warnings


def test_a_failed_document_ends_the_run_with_its_reason(folder: Path) -> None:
    server = FakeServer()
    server.failing = {"a.txt"}
    output = r"1 documents failed: 'a\.txt' \(No text: it is blank\)"
    with pytest.raises(EvaluationError, match=output):
        evaluate(folder, server, collection="scratch")
    assert server.dropped == ["/v1/collections/scratch"]


def test_two_ids_that_become_one_name_end_the_run(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text('{"_id": " a", "text": "x"}\n{"_id": "a", "text": "y"}')
    with pytest.raises(EvaluationError, match="have one name"):
        evaluate(folder, FakeServer())


def test_an_answer_without_one_retriever_is_not_measured(folder: Path) -> None:
    server = FakeServer()
    server.left_out = {"vector": "down"}
    with pytest.raises(EvaluationError, match="not whole"):
        evaluate(folder, server)


def test_a_server_without_vectors_has_no_vector_retriever(folder: Path) -> None:
    server = FakeServer()
    server.has_vectors = False
    report = evaluate(folder, server)
    assert list(report.legs) == ["keyword", "hybrid"]
    assert "the server has no vectors, so there is no vector retriever" in report.warnings


def test_a_ranking_cut_off_too_early_is_said(folder: Path) -> None:
    server = FakeServer()
    server.passages = 300
    report = evaluate(folder, server)
    assert report.as_json()["depth"] == {"keyword": 1, "vector": 1, "hybrid": 1}
    assert "Recall@100 of hybrid saw only 1 documents" in table(report)


def test_the_table_has_a_line_per_retriever(folder: Path) -> None:
    lines = table(evaluate(folder, FakeServer())).splitlines()
    assert lines[1].split() == ["nDCG@10", "Recall@10", "Recall@100", "MRR@10"]
    assert [line.split()[0] for line in lines[2:5]] == ["keyword", "vector", "hybrid"]


def test_hybrid_is_compared_with_its_better_half(folder: Path) -> None:
    server = FakeServer()
    server.blind_to = {(0.0, "days"), (None, "days")}
    report = evaluate(folder, server)
    assert report.comparison
    assert not report.comparison.passes()
    found = report.as_json()["hybrid_minus_half"]
    assert (found["half"], found["ndcg@10"]["mean"]) == ("vector", -0.5)
    assert found["ndcg@10"]["low"] <= -0.5 <= found["ndcg@10"]["high"]
    assert "hybrid - vector, its better half: -0.5000 nDCG@10 [" in table(report)


@pytest.mark.parametrize(
    ("blind_to", "problem"),
    [
        ({(0.0, "days")}, None),
        ({(0.0, "days"), (None, "days")}, "below the gate"),
    ],
)
def test_the_gate_fails_below_the_better_half(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    blind_to: set[tuple[float | None, str]],
    problem: str | None,
) -> None:
    server = FakeServer()
    server.blind_to = blind_to
    monkeypatch.setattr(eval_run, "JsonClient", lambda url, key: server)
    expected = pytest.raises(EvaluationError, match=problem) if problem else nullcontext()
    with expected:
        gated(folder)
    assert json.loads(capsys.readouterr().out)["hybrid_minus_half"]["half"] == "vector"


def test_the_gate_needs_both_halves(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer()
    server.has_vectors = False
    monkeypatch.setattr(eval_run, "JsonClient", lambda url, key: server)
    with pytest.raises(EvaluationError, match="one is missing"):
        gated(folder)


def gated(folder: Path) -> None:
    eval_run.run(
        folder,
        "http://127.0.0.1:9",
        key=None,
        store=None,
        most_queries=None,
        keep=False,
        gate=True,
        json_out=True,
    )


def test_a_scratch_name_is_one_that_collections_may_have() -> None:
    name = scratch_name("한국어 set/with: odd name" * 9)
    assert len(name) <= 64
    assert name.isascii()
    assert name != scratch_name("한국어 set/with: odd name" * 9)


def test_a_server_that_does_not_answer_is_said() -> None:
    with JsonClient("http://127.0.0.1:9") as server, pytest.raises(ServerDown):
        server.get("/healthz")


def test_answers_without_the_reranker_are_measured_and_counted(folder: Path) -> None:
    server = FakeServer()
    server.left_out = {"rerank": "no answer within 2 s"}
    report = evaluate(folder, server)
    assert "the reranker was left out of 2 of 2 answers of hybrid" in report.warnings


def test_retrievers_are_searched_alone_and_hybrid_as_the_server_does(folder: Path) -> None:
    server = FakeServer()
    evaluate(folder, server, collection="scratch")
    alone = {"facets_weight": 0, "memory_weight": 0, "exploration_ratio": 0, "rerank": False}
    request = {"collection": "scratch", "query": "days"}
    sent = [search for search in server.searches if search["query"] == "days"]
    assert sent == [
        {**request, "top": 200, "alpha": 0.0, "ranking": alone},
        {**request, "top": 200, "alpha": 1.0, "ranking": alone},
        {**request, "top": 100},
    ]


def test_a_set_that_is_there_already_is_found_by_its_names(folder: Path) -> None:
    server = FakeServer()
    evaluate(folder, server)
    ids = judge.already_there(server, "kept", beir.read(folder))
    assert ids == {"id of a.txt": "a", "id of b.pdf.txt": "b.pdf"}
    server.failing = {"a.txt"}
    with pytest.raises(EvaluationError, match=r"1 of 2 .* not live in 'kept', such as 'a\.txt'"):
        judge.already_there(server, "kept", beir.read(folder))


def test_only_what_a_collection_lacks_is_ingested(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, judged = FakeServer(), beir.read(folder)
    server.documents["id of a.txt"] = {"name": "a.txt", "text": "ten days"}
    requests: list[tuple[str, str]] = []
    post = server.post

    def recording(path: str, body: dict[str, Any]) -> dict[str, Any]:
        requests.append((path, body["name"]))
        if path == "/v1/collections":
            raise CollectionExists("there is a collection 'kept'")
        return post(path, body)

    monkeypatch.setattr(server, "post", recording)
    expected = {"id of a.txt": "a", "id of b.pdf.txt": "b.pdf"}
    for _ in range(2):
        assert judge.completed(server, "kept", judged) == expected
    missing = ("/v1/collections/kept/documents", "b.pdf.txt")
    assert requests == [("/v1/collections", "kept"), missing, ("/v1/collections", "kept")]


def test_a_search_that_comes_too_late_is_asked_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = FakeServer()
    server.late = client.SEARCH_TRIES - 1
    monkeypatch.setattr(server, "connections", 1)
    assert evaluate(folder, server).legs["hybrid"].measures["ndcg@10"] == 0.5
    server.late = client.SEARCH_TRIES
    with pytest.raises(SearchTimeout):
        evaluate(folder, server)
