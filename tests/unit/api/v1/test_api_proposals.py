"""Proposals of the scheduler wait for a yes in the API, on the command line and on the page."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from click.testing import CliRunner
from context_parts import LoneBroker, app_over
from flask.testing import FlaskClient
from learned import say, trace
from ledger_moves import publish
from synthetic import SHOWN, logged

from callslip.api.http.context import current
from callslip.cli.commands.collections import proposals as proposals_command
from callslip.cli.main import main
from callslip.client import Client
from callslip.config.sections.ranking import MemorySettings, TracesSettings
from callslip.config.settings import Settings
from callslip.messages.options import Options
from callslip.retrieval.ranking.features import Features
from callslip.retrieval.tracing.recording import Learning
from callslip.retrieval.tuning.proposing import better_ranking
from callslip.stores.ledger import Ledger
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.tasks import facets

URL = "/v1/collections/papers/proposals"
CHUNKS = [f"c{n}" for n in range(SHOWN)]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    made.create()
    made.collections.create(
        CollectionSchema("papers", VectorSpec(4)), store="memory", embedder="tiny", analyzer="1"
    )
    yield made
    made.close()


@pytest.fixture
def client(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> FlaskClient:
    app = app_over(ledger=ledger, broker=LoneBroker())

    def connect(_: str | None) -> Client:
        served = httpx.Client(transport=httpx.WSGITransport(app))
        return Client("http://127.0.0.1", http=served)

    monkeypatch.setattr(proposals_command, "connect", connect)
    return app.test_client()


def waiting(ledger: Ledger, facet: str = "") -> str:
    """A proposal of facets, or of a weight."""
    kind, changes = ("facets", {"facets": [facet]}) if facet else ("ranking", {"ranking": {}})
    if not facet:
        changes = {"ranking": {"alpha": 0.6}}
    run = ledger.proposals.begin(kind, "papers", "", 60)  # type: ignore[arg-type]
    assert run is not None
    figures: dict[str, Any] = {
        "questions": 80,
        "now": {"alpha": None},
        "before": 0.8,
        "after": 0.9,
        "gain": {"mean": 0.1, "low": 0.05, "high": 0.2},
    }
    if facet:
        properties = {"name": facet, "distinct": 4, "coverage": 0.9, "separation": 0.2}
        figures = {"properties": [properties]}
    ledger.proposals.end(run, figures, changes, dict.fromkeys(changes), "")
    return run.proposal_id


@pytest.mark.long
def test_outcomes_make_a_proposal_and_a_yes_sets_the_weights(
    client: FlaskClient, ledger: Ledger
) -> None:
    publish(ledger, "one", CHUNKS)
    learning = Learning(ledger, MemorySettings(), TracesSettings(share=0))
    for n, example in enumerate(logged(120, 4, better=0.75)):
        column = np.array([0.4, 0.6, 0.15, 0.2, 0.15, 1.0])
        rows = example.rows[np.argsort(-(example.rows @ column), kind="stable")]
        basis = [Features(*row) for row in rows.tolist()]
        made = trace(
            f"question {n}", CHUNKS, fusion="calibrated", basis=lambda b=basis: b, vector=None
        )
        learning.record([made])
        say(ledger, made.trace_id, [CHUNKS[example.positions[0] - 1]], user=f"user {n}")
    ledger.collections.set_options("papers", Options.model_validate({"ranking": {"rerank": False}}))
    found = better_ranking(ledger, Settings(), ledger.collections.get("papers"))
    assert found.figures["gain"]["low"] > 0
    assert found.changes["ranking"]["rerank"] is False
    run = ledger.proposals.begin("ranking", "papers", "", 60)
    assert run is not None
    ledger.proposals.end(run, found.figures, found.changes, found.before, found.reason)
    (shown,) = client.get(f"{URL}?state=waiting").json["proposals"]
    assert shown["figures"] == json.loads(json.dumps(found.figures))
    accepted = client.post(f"{URL}/{shown['proposal_id']}", json={"decision": "accept"})
    assert (accepted.status_code, accepted.json["state"]) == (200, "applied")
    assert accepted.json["decided_by"] == "open:open"
    ranking = ledger.collections.get("papers").options.ranking
    assert ranking.alpha == found.figures["proposed"]["alpha"] > 0.5
    assert ranking.rerank is False


def test_too_few_outcomes_propose_nothing_and_say_why(ledger: Ledger) -> None:
    found = better_ranking(ledger, Settings(), ledger.collections.get("papers"))
    assert (dict(found.changes), found.reason.partition(":")[0]) == ({}, "too-few-questions")


def test_a_wrong_decision_is_refused_by_name(client: FlaskClient, ledger: Ledger) -> None:
    proposal = waiting(ledger)
    answers = [
        (client.post(f"{URL}/{proposal}", json={"decision": "perhaps"}), 400),
        (client.post(f"{URL}/none", json={"decision": "accept"}), 404),
        (client.post("/v1/collections/none/proposals/x", json={"decision": "accept"}), 404),
        (client.get("/v1/collections/none/proposals"), 404),
        (client.get(f"{URL}?state=lost"), 400),
    ]
    assert [
        (a.status_code, a.json.get("detail")) for a, status in answers if a.status_code != status
    ] == []
    ledger.collections.set_options("papers", Options.model_validate({"ranking": {"alpha": 0.1}}))
    changed = client.post(f"{URL}/{proposal}", json={"decision": "accept"})
    assert (changed.status_code, changed.json["type"].rpartition(":")[2]) == (409, "conflict")
    assert "have changed" in changed.json["detail"]
    assert (
        client.post(f"{URL}/{proposal}", json={"decision": "decline"}).json["state"] == "declined"
    )


def test_accepted_facets_are_those_of_the_collection_and_their_vectors_are_ordered(
    client: FlaskClient, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordered: list[tuple[object, ...]] = []
    monkeypatch.setattr(facets, "request_rebuild", lambda *what: ordered.append(what) or "run")
    proposal = waiting(ledger, "author")
    monkeypatch.setattr("callslip.api.v1.ranking.current", _with_embedder("tiny"))
    assert client.post(f"{URL}/{proposal}", json={"decision": "accept"}).status_code == 200
    assert ledger.collections.get("papers").options.facets == ("author",)
    ((collection, tenant, names),) = ordered
    assert (collection, tenant) == ("papers", "")
    assert names == (*Settings().facets.facets, "author")


def _with_embedder(model: str) -> Any:
    def context() -> Any:
        here = current()
        return SimpleNamespace(
            ledger=here.ledger, settings=here.settings, embedder=SimpleNamespace(model=model)
        )

    return context


def test_the_command_lists_accepts_and_declines(client: FlaskClient, ledger: Ledger) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(main, ["proposals", *arguments, "-c", "papers"])
        assert result.exit_code == 0, result.output
        return result.output

    assert "Nothing yet" in run("list")
    first = waiting(ledger, "author")
    listed = run("list", "--state", "waiting")
    assert f"{first}  facets, " in listed
    assert "author: 4 values on 90% of passages, separation 0.20 – proposed" in listed
    assert "declined" in run("decline", first)
    second = waiting(ledger)
    assert "alpha: chosen → 0.6" in run("list")
    assert "0.800 → 0.900, gain +0.100 [+0.050, +0.200], 80 questions" in run("list")
    assert json.loads(run("accept", second, "--json"))["state"] == "applied"
    assert ledger.collections.get("papers").options.ranking.alpha == 0.6


def test_the_page_lists_them_and_its_form_decides(client: FlaskClient, ledger: Ledger) -> None:
    assert "No run yet" in client.get("/page/proposals?collection=papers").text
    proposal = waiting(ledger)
    start = client.get("/?collection=papers").text
    assert re.search(r'href="/page/proposals\?collection=papers">Proposals <span[^>]*>1<', start)
    shown = client.get("/page/proposals?collection=papers").text
    assert "alpha: chosen → 0.6" in shown
    token = re.search(r'name="csrf_token" value="([\w-]+)"', shown)
    assert token is not None
    form = {"collection": "papers", "decision": "accept", "proposal_id": proposal}
    url = "/page/proposals"
    assert client.post(url, data=form).status_code == 403
    sent = client.post(url, data=form | {"csrf_token": token[1]})
    assert (sent.status_code, sent.location) == (303, "/page/proposals?collection=papers")
    assert ledger.collections.get("papers").options.ranking.alpha == 0.6
    again = client.post(url, data=form | {"csrf_token": token[1], "decision": "decline"})
    assert again.status_code == 409
    assert "does not wait" in again.text
    assert client.get("/page/proposals?collection=none").status_code == 404
