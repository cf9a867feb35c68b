"""The quality table, against a server that answers as it is told to."""

import json
import os
from pathlib import Path

import pytest
from fake_server import FakeServer

from benchmarks.quality import judged_collections
from benchmarks.quality.table import Quality, Row, compare, lines, main
from callslip.errors import KeyRefused, ServerDown
from callslip.evals import beir, judge, variants
from callslip.evals.variants import HYBRID, VARIANTS, Variant
from callslip.workers.local_access import write_key
from callslip.workers.supervision.runfile import Process, RunFile

CORPUS = {"a": "ten days", "b": "two cats", "c": "one fish"}
QUERIES = {"q1": "days", "q2": "cats", "q3": "fish", "q4": "dogs"}


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(variants, "POLL_SECONDS", 0.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "pets", {})


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    made = FakeServer()
    monkeypatch.setattr(judged_collections, "JsonClient", lambda url, key: made)
    return made


def test_a_benchmark_uses_the_key_of_the_server_that_runs_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLSLIP_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("CALLSLIP_API__KEY", raising=False)
    write_key(tmp_path, "callslip_1")
    url = "http://127.0.0.1:9"
    RunFile(Process.of(os.getpid()), url, "redis://", None).write(tmp_path)
    with judged_collections.connected(None) as client:
        assert (client.url, client.client.has_key) == (url, True)
    elsewhere = "http://127.0.0.1:10"
    with judged_collections.connected(elsewhere) as client:
        assert (client.url, client.client.has_key) == (elsewhere, False)
    with pytest.raises(KeyRefused) as refused, judged_collections.connected(elsewhere):
        raise KeyRefused("the request carries no key")
    assert "No key is set" in refused.value.advice


def write(folder: Path, metadata: dict[str, str]) -> Path:
    folder.mkdir()
    corpus = [{"_id": name, "text": text} for name, text in CORPUS.items()]
    queries = [{"_id": n, "text": text, "metadata": metadata} for n, text in QUERIES.items()]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (folder / "qrels.tsv").write_text("q1\ta\t1\nq2\tb\t1\nq3\tc\t1\nq4\ta\t1\n")
    return folder


def measured(
    folder: Path, client: FakeServer, request: tuple[Variant, ...] = VARIANTS
) -> dict[str, Row]:
    return {row.variant: row for row in result(folder, client, request).rows}


def result(folder: Path, client: FakeServer, request: tuple[Variant, ...] = VARIANTS) -> Quality:
    judged = beir.read(folder)
    with judge.ingested(client, "scratch", judged, []) as ids:
        return compare(client, "scratch", judged, ids, request)


def test_every_way_has_a_row_and_its_difference_to_hybrid(folder: Path, client: FakeServer) -> None:
    client.has_reranker = True
    rows = measured(folder, client)
    assert list(rows) == [
        *("keyword", "vector", "hybrid", "hybrid + prior", "hybrid + rerank"),
        *("hybrid + memory", "hybrid + memory, unrelated"),
    ]
    assert {rows[name].ndcg.mean for name in list(rows)[:5]} == {0.75}
    assert rows["hybrid"].gain is None
    gain = rows["hybrid + prior"].gain
    assert gain is not None
    assert (gain.mean, gain.low, gain.high) == (0, 0, 0)


def test_only_what_is_measured_is_searched_with(folder: Path, client: FakeServer) -> None:
    client.has_reranker = True
    measured(folder, client)
    sent = [search["ranking"] for search in client.searches if search["query"] == "days"]
    memory = {"memory_weight": 0, "exploration_ratio": 0}
    alone = {"facets_weight": 0, **memory, "rerank": False}
    taught = [alone, alone]
    prior, reranked = {**memory, "rerank": False}, {**alone, "rerank": True}
    assert sent == [alone, alone, alone, prior, reranked, *taught]


def test_memory_is_measured_on_queries_that_it_did_not_learn_from(
    folder: Path, client: FakeServer
) -> None:
    rows = measured(folder, client)
    assert rows["hybrid + memory"].queries == 2
    assert rows["hybrid + memory, unrelated"].queries == 1
    ranking = {"facets_weight": 0, "exploration_ratio": 0, "rerank": False}
    request = [search["query"] for search in client.searches if search.get("ranking") == ranking]
    assert sorted(request) == ["cats", "cats", "dogs"]
    assert client.remembered == {}


def test_what_is_remembered_of_others_is_neither_measured_nor_forgotten(
    folder: Path, client: FakeServer
) -> None:
    theirs = {"eve": ["a chunk"]}
    client.remembered = dict(theirs)
    notes = result(folder, client).notes
    assert "hybrid + memory is not measured: 'scratch' remembers something already" in notes
    assert client.remembered == theirs


def test_a_server_that_takes_no_feedback_leaves_memory_out(
    folder: Path, client: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variants, "RECORDED_SECONDS", 0.0)
    client.takes_feedback = False
    assert (
        "hybrid + memory is not measured: searches are not recorded" in result(folder, client).notes
    )
    assert client.remembered == {}


def test_what_the_server_lacks_is_a_note(folder: Path, client: FakeServer) -> None:
    client.has_vectors = client.has_facets = False
    found = result(folder, client)
    assert [row.variant for row in found.rows] == ["keyword", "hybrid"]
    assert found.notes == (
        "vector is not measured: the server has no vectors",
        "hybrid + prior is not measured: collections without vectors have no facets",
        "hybrid + rerank is not measured: the server has no reranker",
        "hybrid + memory is not measured: the server has no vectors",
        "hybrid + memory, unrelated is not measured: the server has no vectors",
    )
    assert client.remembered == {}


def test_a_facet_that_fails_leaves_the_prior_out(folder: Path, client: FakeServer) -> None:
    client.facet_error = {"detail": "the embedder is down"}
    assert "hybrid + prior is not measured: facet 'lang': the embedder is down" in (
        result(folder, client).notes
    )


def test_a_rebuild_that_never_ends_leaves_the_prior_out(
    folder: Path, client: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variants, "FACETS_SECONDS", 0.0)
    assert any("not rebuilt within" in note for note in result(folder, client).notes)


def test_a_ranking_cut_off_too_early_is_said(folder: Path, client: FakeServer) -> None:
    client.passages = 300
    assert "Recall@100 of hybrid saw only 1 documents of some query" in result(folder, client).notes


def test_a_way_that_learns_is_held_against_hybrid_on_the_queries_that_it_is_measured_on(
    folder: Path, client: FakeServer
) -> None:
    learning = Variant("learning", prepare=lambda client, name, judged, ids: judged.half(1))
    found = measured(folder, client, (HYBRID, learning))["learning"]
    assert (found.queries, found.ndcg.mean) == (2, 0.5)
    assert found.gain is not None
    assert found.gain.mean == 0


def test_queries_with_a_moment_are_asked_with_it_and_once_without(
    tmp_path: Path, client: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "laws", {"as_of": "2020-03-31"})
    assert main([str(tmp_path / "laws"), "--queries", "1"]) == 0
    assert [search["as_of"] for search in client.searches[-2:]] == ["2020-03-31", "any"]
    assert "| laws | hybrid, any time | 1 |" in capsys.readouterr().out


def test_the_table_is_markdown_with_published_figures_beside(
    tmp_path: Path, client: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "en_xquad", {})
    assert main([str(tmp_path / "en_xquad"), "--half", "0"]) == 0
    written = capsys.readouterr().out
    assert "half 0 of the queries" in written
    cells = "1.000 [1.000, 1.000] | 1.000 | 1.000 | 1.000"
    assert f"| en_xquad | keyword | 2 | {cells} | +.000 [+.000, +.000] | BM25 .965 |" in written
    assert f"| en_xquad | hybrid | 2 | {cells} |  |  |" in written
    assert "- en_xquad: hybrid + rerank is not measured: the server has no reranker." in written
    assert len(client.dropped) == 1


def test_differences_have_signs_and_no_needless_zeros(folder: Path, client: FakeServer) -> None:
    worse = Variant("worse", {"query": "dogs"})
    row = lines(result(folder, client, (HYBRID, worse)))[1]
    assert row[3] == ".000 [.000, .000]"
    assert row[7].startswith("−.750 [−1.000, ")


def test_the_gate_fails_a_set_whose_hybrid_is_below_its_better_half(
    folder: Path, client: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(folder), "--gate"]) == 0
    assert "its better half: +0.0000 nDCG@10" in capsys.readouterr().out
    client.blind_to = {(None, text) for text in QUERIES.values()}
    assert main([str(folder)]) == 0
    assert main([str(folder), "--gate"]) == 1
    assert "hybrid is below the gate of −0.005" in capsys.readouterr().out


def test_a_set_that_is_there_already_is_neither_ingested_nor_dropped(
    folder: Path, client: FakeServer
) -> None:
    assert main([str(folder), "--keep"]) == 0
    sent = dict(client.documents)
    assert main([str(folder), "--collection", "mine"]) == 0
    assert client.documents == sent
    assert client.dropped == []
    assert client.searches[-1]["collection"] == "mine"


def test_a_set_that_fails_does_not_take_the_others_with_it(
    tmp_path: Path, folder: Path, client: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "gone"), str(folder)]) == 1
    written = capsys.readouterr().out
    assert "| pets | hybrid | 4 | .750" in written
    assert "- gone: not measured: " in written


def test_a_server_that_goes_away_is_said(
    folder: Path,
    client: FakeServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def down(body: object) -> None:
        raise ServerDown("no answer")

    monkeypatch.setattr(client, "_found", down)
    assert main([str(folder)]) == 1
    assert "- pets: not measured: no answer." in capsys.readouterr().out


def test_a_collection_for_each_set_or_for_none(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([str(folder), str(folder), "--collection", "mine"])
    assert "1 times --collection for 2 sets" in capsys.readouterr().err
