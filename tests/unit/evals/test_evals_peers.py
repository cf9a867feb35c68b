"""The comparison with other systems: its documents, its protocol, its ratios. Nothing is timed."""

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.peers import protocol, report
from benchmarks.peers.environments import REQUIREMENTS, SYSTEMS
from benchmarks.peers.material import Material, prepare
from benchmarks.peers.measuring import Round, Survival
from benchmarks.peers.running import Gone, Running, disk
from callslip.errors import EvaluationError

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys, time
from benchmarks.peers import protocol

class Chain(protocol.Chain):
    def __init__(self, data, models):
        self.chunks = {}
    def ingest(self, documents, report):
        print("a library's greeting")
        for number, document in enumerate(documents, 1):
            self.chunks[document.name] = len(document.spans)
            report(number, number)
            time.sleep(float(sys.argv[2]))
    def change(self, documents): pass
    def delete(self, names): pass
    def search(self, query): return [query]
    def stored(self): return self.chunks

protocol.serve(Chain)
"""


class Names(protocol.Chain):
    """Keeps the names of documents; a search waits for three others."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.four = threading.Barrier(4)

    def ingest(self, documents: Sequence[protocol.Document], report: protocol.Report) -> None:
        for batch in protocol.batches(documents, 2):
            self.names += [each.name for each in batch]
            report(len(self.names), len(self.names))

    def change(self, documents: Sequence[protocol.Document]) -> None:
        self.names.append(f"changed {len(documents)}")

    def delete(self, names: Sequence[str]) -> None:
        self.names = [name for name in self.names if name not in names]

    def search(self, query: str) -> list[str]:
        self.four.wait(60)
        return protocol.distinct([query, "other", query])

    def stored(self) -> dict[str, int]:
        return protocol.counted(self.names)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three documents of "one two", cut into two chunks each."""
    texts = tmp_path / "texts"
    texts.mkdir()
    names = ["b.txt", "a.txt", "c.txt"]
    for name in names:
        (texts / name).write_text("one two")
    spans = {name: [[0, 3], [4, 7]] for name in names}
    (tmp_path / "texts.json").write_text(json.dumps(spans))
    return texts


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """A judged set of 40 documents; query N asks for document N, and query 0 for 1 too."""
    judged = tmp_path / "judged"
    judged.mkdir()
    corpus = [
        {"_id": f"d{n}", "title": f"T{n}", "text": f"line one of {n}\r\nand two"} for n in range(40)
    ]
    queries = [{"_id": f"q{n}", "text": f"what is {n}?"} for n in range(10)]
    for name, lines in (("corpus", corpus), ("queries", queries)):
        (judged / f"{name}.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    qrels = [f"q{n}\td{n}\t1" for n in range(10)] + ["q0\td1\t2", "q0\td2\t0"]
    (judged / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(qrels) + "\n")
    return judged


@pytest.fixture
def material(judged: Path, tmp_path: Path, models_dir: Path) -> Material:
    return prepare([judged], 20, tmp_path / "out", models_dir)


def running(tmp_path: Path, pause: float = 0.0) -> Running:
    command = (sys.executable, "-c", PROGRAM, str(tmp_path / "data"), str(pause))
    return Running(command, dict(os.environ) | {"PYTHONPATH": str(ROOT)}, tmp_path / "log")


def test_documents_are_read_in_order_with_their_chunks(folder: Path) -> None:
    documents = protocol.read_documents(folder)
    assert [each.name for each in documents] == ["b.txt", "a.txt", "c.txt"]
    assert documents[0].cut(documents[0].path.read_text()) == ["one", "two"]


def test_a_system_carries_out_requests(folder: Path) -> None:
    chain, reports = Names(), []
    ingest = {"do": "ingest", "folder": str(folder)}
    assert protocol.respond(chain, ingest, lambda *n: reports.append(n))["seconds"] >= 0
    assert reports == [(2, 2), (3, 3)]
    protocol.respond(chain, {"do": "delete", "names": ["a.txt"]}, lambda *_: None)
    protocol.respond(chain, {"do": "change", "folder": str(folder)}, lambda *_: None)
    protocol.respond(chain, {"do": "settle"}, lambda *_: None)
    stored = protocol.respond(chain, {"do": "stored"}, lambda *_: None)
    assert stored == {"chunks": {"b.txt": 1, "c.txt": 1, "changed 3": 1}}
    with pytest.raises(ValueError, match="sing"):
        protocol.respond(chain, {"do": "sing"}, lambda *_: None)


def test_searches_run_at_once_and_results_are_in_order_of_the_queries() -> None:
    chain, queries = Names(), [f"q{n}" for n in range(20)]
    request = {"do": "search", "queries": queries, "clients": 4}
    response = protocol.respond(chain, request, lambda *_: None)
    assert response["found"] == [[query, "other"] for query in queries]
    assert len(response["milliseconds"]) == 20


def test_the_driver_talks_to_a_process_whose_libraries_print(folder: Path, tmp_path: Path) -> None:
    with running(tmp_path) as system:
        with system.watched() as spent:
            assert system.request("ingest", folder=str(folder))["seconds"] >= 0
        assert (system.acknowledged, system.searchable) == (3, 3)
        assert system.request("stored") == {"chunks": dict.fromkeys(("b.txt", "a.txt", "c.txt"), 2)}
        done = system.request("search", queries=["x", "y"], clients=2)
        assert done["found"] == [["x"], ["y"]]
        assert spent.peak > 1
        assert spent.processor >= 0
    assert "a library's greeting" in (tmp_path / "log").read_text()


def test_a_killed_system_is_gone(folder: Path, tmp_path: Path) -> None:
    with running(tmp_path, pause=60) as system:
        errors = []

        def ingest() -> None:
            try:
                system.request("ingest", folder=str(folder))
            except Gone as error:
                errors.append(error)

        thread = threading.Thread(target=ingest)
        thread.start()
        while not system.searchable:
            time.sleep(0.01)
        system.kill()
        thread.join()
        assert system.acknowledged == 1
        assert len(errors) == 1
        with pytest.raises(Gone):
            system.request("stored")


def test_a_system_that_cannot_start_is_gone_with_its_words(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "raise SystemExit('no such library')")
    with pytest.raises(Gone, match="no such library"):
        Running(command, os.environ, tmp_path / "log")


def test_what_links_lead_to_takes_no_disk(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_bytes(b"x" * 100_000)
    before = disk(tmp_path / "data")
    (tmp_path / "data" / "models").symlink_to(tmp_path)
    assert before == disk(tmp_path / "data") >= 0.1


def test_the_documents_of_a_run_are_cut_and_judged(material: Material) -> None:
    names = set(material.chunks)
    assert len(names) == 20
    assert len(list(material.warm.iterdir())) == 8
    assert names == {path.name for path in material.whole.iterdir()}
    for document in protocol.read_documents(material.whole):
        text = document.path.read_text()
        assert "".join(document.cut(text)) == text
        assert "\r" not in text
    assert len(material.queries) == 10  # judged documents come first
    assert all(set(grades) <= names for grades in material.qrels.values())
    (double,) = [grades for grades in material.qrels.values() if len(grades) > 1]
    assert sorted(double.values()) == [1, 2]


def test_changed_documents_have_a_known_name_and_another_text(material: Material) -> None:
    (changed,) = protocol.read_documents(material.changed)
    before = (material.whole / changed.name).read_text()
    assert changed.path.read_text().startswith(before)
    assert changed.path.read_text() != before
    assert changed.name not in material.deleted
    assert len(material.deleted) == 2


def test_each_measurement_has_other_queries_until_all_were_used(material: Material) -> None:
    first, second = material.searches(0, 5), material.searches(1, 5)
    assert len({*first, *second}) == 10
    assert material.searches(2, 5) == first


def test_too_few_documents_are_an_error(judged: Path, tmp_path: Path, models_dir: Path) -> None:
    with pytest.raises(EvaluationError, match="40 documents, not 48"):
        prepare([judged], 40, tmp_path / "out", models_dir)


def test_a_ratio_above_one_says_that_callslip_is_ahead() -> None:
    assert str(report.ratio([10.0], [5.0], more_is_better=True)) == "2.00"
    assert str(report.ratio([10.0], [5.0], more_is_better=False)) == "0.50"


def test_a_ratio_is_of_the_rounds_of_one_number_with_their_spread() -> None:
    own, other = [10.0, 20.0, 40.0], [10.0, 10.0]  # a run that was interrupted
    ratio = report.ratio(own, other, more_is_better=True)
    assert (ratio.median, ratio.low, ratio.high) == (1.5, 1.0, 2.0)
    assert str(ratio) == "1.50 (1.00 to 2.00)"


def test_the_tables_have_every_row_and_system() -> None:
    figures = {row.key: 2.0 for row in report.ROWS}
    own = Round(figures | {"ndcg@10": 0.8}, Survival(90, 50, 96, 0))
    other = Round(figures | {"ndcg@10": 0.75, "disk": 8.0}, None, ["2 documents missing"])
    rounds = {"callslip": [own], "other": [other]}
    assert "| nDCG@10 | .800 | .750 |" in report.figures(rounds)
    assert "| disk, MB | 4.00 |" in report.ratios(rounds)
    assert "| nDCG@10, difference | +.050 |" in report.ratios(rounds)
    assert "| callslip | 90 | 50 | 96 | 0 |" in report.survival(rounds)
    assert "| other | ended before |" in report.survival(rounds)
    assert report.remarks(rounds) == "- other: 2 documents missing"
    assert report.figures(rounds).count("\n") == len(report.ROWS) + 2


def test_every_system_has_its_script_and_its_requirements() -> None:
    chains = ROOT / "benchmarks" / "peers" / "chains"
    assert {path.stem for path in chains.glob("*_chain.py")} == {
        system.module for system in SYSTEMS.values()
    }
    named = {system.environment for system in SYSTEMS.values()} - {""}
    assert {path.stem for path in REQUIREMENTS.iterdir()} == named | {"embedder"}
