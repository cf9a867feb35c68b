"""A judged set's questions, asked at the server, as examples; `callslip tune --judged`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from synthetic import NOW, candidates

import callslip.evals.client
from callslip.cli.commands.collections import tune as tune_command
from callslip.cli.main import main
from callslip.client import Client, models
from callslip.errors import EvaluationError, JudgedSetError
from callslip.evals import beir, examples
from callslip.evals.client import JsonClient
from callslip.retrieval.ranking.features import Features
from callslip.retrieval.tuning.examples import Weights

BETTER = Weights(0.75, 0.25, 0.2, 0.15)
SEED = 11


class JudgedClient(JsonClient):
    """Two passages of each of 20 documents for a question; an alpha of .75 knows the answer."""

    def __init__(self, *_: object, **given: Any) -> None:
        super().__init__("http://127.0.0.1:9")
        self.requests: list[dict[str, Any]] = []
        self.left_out: dict[str, str] = {}
        self.given: dict[str, Any] = given

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(body)
        question = int(body["query"].split()[-1])
        hits = [
            {
                "document_id": f"id of {question}-{n // 2}",
                "filename": f"{question}-{n // 2}.txt",
                "reasons": {"basis": Features(*row)._asdict() | self.given.get("basis", {})},
            }
            for n, row in enumerate(rows_of(question).tolist())
        ]
        return {"hits": hits, "alpha": 0.4, "fusion": "calibrated", "left_out": self.left_out}


def rows_of(question: int) -> np.typing.NDArray[np.float64]:
    return candidates(np.random.default_rng(SEED + question))


def answer_to(question: int) -> int:
    return int(np.argmax(BETTER.scores(rows_of(question), np.ones(1)))) // 2


def written(folder: Path, count: int, document: str = "{}") -> Path:
    """Questions with the document that answers each, without a corpus."""
    queries = [{"_id": f"q{n}", "text": f"what of {n}"} for n in range(count)]
    queries[0] |= {"metadata": {"as_of": "2020-01-01"}}
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    lines = (f"q{n}\t{document.format(f'{n}-{answer_to(n)}')}\t1" for n in range(count))
    (folder / "qrels.tsv").write_text("query\tdocument\tgrade\n" + "\n".join(lines))
    return folder


@pytest.mark.parametrize("document", ["{}", "{}.txt", "id of {}"])
def test_a_document_is_judged_by_its_id_or_its_name(tmp_path: Path, document: str) -> None:
    questions = beir.read_questions(written(tmp_path, 3, document))
    with JudgedClient() as client:
        found = examples.ask(client, "papers", questions, NOW, tenant="north")
    assert [body.get("as_of") for body in client.requests if "0" in body["query"]] == ["2020-01-01"]
    assert {(b["top"], b["explain"], b["tenant"]) for b in client.requests} == {
        (100, True, "north")
    }
    for n, example in enumerate(found):
        assert example is not None
        assert np.flatnonzero(example.grades).tolist() == [answer_to(n)]
        assert example.owners.tolist() == [row // 2 for row in range(40)]
        assert example.ideal == 1.0
        assert example.keys[0] == f"query what of {n}"


def test_an_answer_that_is_not_whole_or_judges_nothing_is_an_error(tmp_path: Path) -> None:
    questions = beir.read_questions(written(tmp_path, 3))
    client = JudgedClient()
    client.left_out = {"vector": "the embedder does not answer"}
    with pytest.raises(EvaluationError, match="not whole"):
        examples.ask(client, "papers", questions, NOW)
    strange = beir.read_questions(written(tmp_path, 3, "strange {}"))
    with pytest.raises(JudgedSetError, match="no hit of 3 questions"):
        examples.ask(JudgedClient(), "papers", strange, NOW)
    (tmp_path / "qrels.tsv").write_text("q0\t1\t0\n")
    with pytest.raises(JudgedSetError, match="judges no document"):
        beir.read_questions(tmp_path)


def test_an_answer_that_does_not_say_what_weights_would_do_is_no_example(tmp_path: Path) -> None:
    questions = beir.read_questions(written(tmp_path, 3))
    with pytest.raises(JudgedSetError):
        examples.ask(JudgedClient(basis={"vector": None}), "papers", questions, NOW)


class Options(Client):
    """Gives the ranking and the options of one collection, and takes new ones."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:9")
        self.options: dict[str, Any] = {"scrub": "off", "ranking": {"alpha": 0.4, "rerank": None}}

    def list_collections(self) -> models.Collections:
        options = models.Options.model_validate(self.options)
        collection_name = models.Collection.model_construct(name="papers", options=options)
        return models.Collections.model_construct(collections=[collection_name])

    def show_ranking(self, collection: str) -> models.RankingMessage:
        assert collection == "papers"
        numbers = {"pool": 150, "facets_top": 2, "exploration_ratio": 0.15, "rerank_top": 40}
        other = {"rerank": False, "mmr_lambda": 1.0, "narrow": True, "fusion": "calibrated"}
        found = numbers | other | {"hotset": False} | NOW.weights.__dict__
        return models.RankingMessage.model_validate(found)

    def set_options(
        self, collection: str, options: models.Options | Mapping[str, Any]
    ) -> models.Options:
        assert isinstance(options, dict)
        self.options = options
        return models.Options.model_validate(options)


def test_a_judged_set_is_fitted_and_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection_name = Options()
    monkeypatch.setattr(tune_command, "connect", lambda _: collection_name)
    monkeypatch.setattr(callslip.evals.client, "JsonClient", JudgedClient)
    command = ["tune", "papers", "--judged", str(written(tmp_path, 150))]
    shown = CliRunner().invoke(main, command)
    assert shown.exit_code == 0, shown.output
    assert "not biased" in shown.output
    assert collection_name.options["ranking"]["alpha"] == 0.4
    shown = CliRunner().invoke(main, [*command, "--apply"])
    assert shown.exit_code == 0, shown.output
    assert "Applied" in shown.output
    assert collection_name.options["scrub"] == "off"
    assert 0.6 <= collection_name.options["ranking"]["alpha"] <= 0.9
