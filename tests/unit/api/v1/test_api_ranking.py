"""What weights are fitted on goes out at the server, and `callslip tune` sets what is better."""

import base64
import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from click.testing import CliRunner, Result
from context_parts import app_over
from flask.testing import FlaskClient
from learned import say, trace
from ledger_moves import publish
from synthetic import SHOWN, logged

from callslip.cli.commands.collections import tune as tune_command
from callslip.cli.main import main
from callslip.client import Client
from callslip.config.sections.ranking import MemorySettings, TracesSettings
from callslip.messages.options import Options
from callslip.retrieval.ranking.features import Features
from callslip.retrieval.ranking.memory import Explored
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.ledger import Ledger
from callslip.stores.ledger.learning import judged
from callslip.stores.records import CollectionSchema, VectorSpec

EXAMPLES = "/v1/collections/papers/ranking/examples"
CHUNKS = [f"c{n}" for n in range(SHOWN)]

TOGETHER = 20
"""Searches of a page, of which the ledger reads more than one."""


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    made = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    made.create()
    made.collections.create(
        CollectionSchema("papers", VectorSpec(4)), store="memory", embedder="tiny", analyzer="1"
    )
    publish(made, "one", CHUNKS)
    yield made
    made.close()


@pytest.fixture
def client(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> FlaskClient:
    app = app_over(ledger=ledger)

    def connect(_: str | None) -> Client:
        served = httpx.Client(transport=httpx.WSGITransport(app))
        return Client("http://127.0.0.1", http=served)

    monkeypatch.setattr(tune_command, "connect", connect)
    return app.test_client()


def searched(ledger: Ledger, query: str, basis: Sequence[Features], **given: Any) -> str:
    """Record a search that gave all chunks."""
    plain = {"fusion": "calibrated", "basis": lambda: basis, "vector": None}
    made = trace(query, CHUNKS, **plain | given)
    Learning(ledger, MemorySettings(), TracesSettings(share=0)).record([made])
    return made.trace_id


def history(ledger: Ledger, count: int, better: float | None) -> None:
    """Searches of as many questions, each with an outcome."""
    for n, example in enumerate(logged(count, 4, better=better)):
        column = np.array([0.4, 0.6, 0.15, 0.2, 0.15, 1.0])
        rows = example.rows[np.argsort(-(example.rows @ column), kind="stable")]
        search = searched(ledger, f"question {n}", [Features(*row) for row in rows.tolist()])
        say(ledger, search, [CHUNKS[example.positions[0] - 1]], user=f"user {n}")


def lines(client: FlaskClient, **request: int) -> list[dict[str, Any]]:
    shown = client.get(EXAMPLES, query_string=request)
    assert (shown.status_code, shown.content_type) == (200, "application/x-ndjson")
    return [json.loads(line) for line in shown.text.splitlines()]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["tune", *arguments])


FLAT = [Features(0.5, 0.5, 0.0, 0.0, 0.0, 0.0)]


def test_only_searches_of_which_something_helped_go_out(
    client: FlaskClient, ledger: Ledger
) -> None:
    vector = np.array([0.6, 0.8, 0, 0], np.float32)
    tried = Explored("c9", 10, 0.005)
    good = searched(ledger, "good", FLAT * 3, vector=vector, explored=tried)
    say(ledger, good, ["c9", "c2"], user="eve")
    searched(ledger, "nobody said anything", FLAT)
    say(ledger, searched(ledger, "bad", FLAT), ["c1"], "unhelpful", user="eve")
    for verdict in ("helpful", "unhelpful"):  # one against one
        disputed = searched(ledger, "disputed", FLAT)
        say(ledger, disputed, ["c3"], verdict, user=f"user {verdict}")
    taken_back = say(ledger, searched(ledger, "taken back", FLAT), ["c4"], user="eve")
    ledger.outcomes.withdraw(taken_back.outcome_id, half_life_weeks=6)
    found = lines(client)
    assert [line["helped"] for line in found] == [[4], [3, 10]]
    (line,) = found[1:]
    assert line["explored"] == [10, 0.005]
    assert line["basis"] == [[0.5, 0.5, 0.0, 0.0, 0.0, 0.0]] * 3
    sent = np.frombuffer(base64.b64decode(line["vector"]), "<f2")
    assert sent.tolist() == pytest.approx(vector.tolist(), abs=1e-3)
    assert "good" not in json.dumps(found)


def test_an_older_search_names_its_explored_rank_place(
    client: FlaskClient, ledger: Ledger, tmp_path: Path
) -> None:
    search = searched(ledger, "good", FLAT * 3, explored=Explored("c9", 10, 0.005))
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as database, database:
        database.execute(
            "update retrieval_events set settings = replace(settings, 'position', 'place')"
        )
    say(ledger, search, ["c9"], user="eve")
    (line,) = lines(client)
    assert line["explored"] == [10, 0.005]


def test_what_is_said_for_and_against_a_hit_of_one_search_cancels(
    client: FlaskClient, ledger: Ledger
) -> None:
    search = searched(ledger, "disputed", FLAT)
    say(ledger, search, ["c3"], "helpful", user="eve")
    assert len(lines(client)) == 1
    say(ledger, search, ["c3"], "unhelpful", user="adam")
    assert lines(client) == []


def test_the_newest_go_out_first_page_by_page_and_no_more_than_asked(
    client: FlaskClient, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judged, "TOGETHER", TOGETHER)
    now = time.time()
    for n in range(TOGETHER + 20):
        search = searched(ledger, f"question {n}", FLAT, at=now - n // 3, alpha=(n % 100) / 100)
        say(ledger, search, ["c0"], user=f"user {n}")
    whole = lines(client)
    assert len(whole) == len({line["question"] for line in whole}) == TOGETHER + 20
    assert whole[: TOGETHER + 5] == lines(client, limit=TOGETHER + 5)
    assert client.get("/v1/collections/none/ranking/examples").status_code == 404


def test_the_ranking_in_force_is_that_of_the_options_else_of_the_settings(
    client: FlaskClient, ledger: Ledger
) -> None:
    options = Options.model_validate({"ranking": {"alpha": 0.7}})
    ledger.collections.set_options("papers", options)
    found = client.get("/v1/collections/papers/ranking").json
    assert (found["alpha"], found["proximity"], found["fusion"]) == (0.7, 0.25, "calibrated")
    assert client.get("/v1/collections/none/ranking").status_code == 404


@pytest.mark.long
def test_tune_shows_what_is_better_and_changes_it_only_when_told(
    client: FlaskClient, ledger: Ledger
) -> None:
    kept = Options.model_validate({"scrub": "text", "ranking": {"rerank": False}})
    ledger.collections.set_options("papers", kept)
    history(ledger, 120, better=0.75)
    shown = run("papers")
    assert shown.exit_code == 0, shown.output
    assert "120 questions of the outcomes, 120 searches" in shown.output
    assert "Better. Apply it" in shown.output
    assert ledger.collections.get("papers").options == kept
    applied = run("papers", "--apply", "--json")
    assert applied.exit_code == 0, applied.output
    report = json.loads(applied.output)
    assert report["applied"] is True
    assert report["gain"]["low"] > 0
    assert report["off_policy"]["low"] >= -0.005
    options = ledger.collections.get("papers").options
    assert options.scrub == "text"
    assert options.ranking.rerank is False
    assert options.ranking.alpha == report["proposed"]["alpha"] > 0.5


@pytest.mark.long
def test_chance_is_shown_but_refused(client: FlaskClient, ledger: Ledger) -> None:
    history(ledger, 80, better=None)
    before = ledger.collections.get("papers").options
    shown = run("papers")
    assert shown.exit_code == 0, shown.output
    assert "Not to be applied" in shown.output
    refused = run("papers", "--apply", "--json")
    assert refused.exit_code == 1
    assert '"type": "not-better"' in refused.output
    assert ledger.collections.get("papers").options == before


def test_too_few_questions_say_how_many_are_needed(client: FlaskClient, ledger: Ledger) -> None:
    history(ledger, 12, better=0.75)
    searched(ledger, "no outcome", FLAT)
    refused = run("papers", "--apply")
    assert refused.exit_code == 1
    assert "12 different questions can be used, 50 are needed" in refused.output
    assert run("none").exit_code == 1
    assert run("papers", "--tenant", "north").exit_code == 2
