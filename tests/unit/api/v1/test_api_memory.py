"""Feedback, memory and traces at the server, and `callslip memory`, over a real ledger."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from context_parts import app_over
from flask.testing import FlaskClient
from flask_openapi3 import OpenAPI
from learned import EAST, trace
from ledger_moves import publish

from callslip.api.v1 import feedback
from callslip.cli.commands.collections import memory as memory_commands
from callslip.cli.main import main
from callslip.client import Client
from callslip.config.sections.ranking import MemorySettings, TracesSettings
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.ledger import Ledger
from callslip.stores.records import CollectionSchema, VectorSpec

MEMORY = "/v1/collections/papers/memory"


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    made = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    made.create()
    for name, tenants in (("papers", False), ("flats", True)):
        schema = CollectionSchema(name, VectorSpec(4), tenants=tenants)
        made.collections.create(schema, store="memory", embedder="tiny", analyzer="1")
    monkeypatch.setattr(feedback, "PATIENCE_SECONDS", 0.01)
    publish(made, "one", "abc")
    yield made
    made.close()


def app_of(ledger: Ledger) -> OpenAPI:
    limits = MemorySettings(feedback_per_hour=3)
    return app_over(ledger=ledger, learning=Learning(ledger, limits, TracesSettings()))


@pytest.fixture
def client(ledger: Ledger) -> FlaskClient:
    return app_of(ledger).test_client()


def searched(ledger: Ledger, query: str = "how long?", **given: Any) -> str:
    """Record a search that gave the chunks a, b and c."""
    made = trace(query, "abc", **given)
    Learning(ledger, MemorySettings(), TracesSettings()).record([made])
    return made.trace_id


def report(client: FlaskClient, search: str, **given: Any) -> Any:
    body = {"trace_id": search, "chunk_ids": ["a"], "verdict": "helpful"} | given
    return client.post("/v1/feedback", data=json.dumps(body), content_type="application/json")


def test_feedback_is_taken_once_and_withdrawn(client: FlaskClient, ledger: Ledger) -> None:
    trace_id = searched(ledger)
    first = report(client, trace_id, user="eve")
    assert first.status_code == 201
    assert first.json["counted"] == ["a"]
    again = report(client, trace_id, user="eve")
    assert (again.status_code, again.json) == (200, first.json)
    shown = client.get(MEMORY).json
    assert (shown["chunks"], shown["useful"], shown["changes"]) == (1, 1, 2)
    assert shown["memories"][0]["chunk_id"] == "a"
    assert shown["memories"][0]["utility"] == pytest.approx(1, abs=1e-4)
    gone = client.delete(f"/v1/feedback/{first.json['feedback_id']}").json
    assert gone["withdrawn_at"] is not None
    assert client.get(MEMORY).json["chunks"] == 0
    unknown = client.delete("/v1/feedback/none")
    assert unknown.status_code == 404
    assert unknown.json["type"] == "urn:callslip:problem:feedback-not-found"


def test_wrong_feedback_is_refused_and_names_what_is_wrong(
    client: FlaskClient, ledger: Ledger
) -> None:
    trace_id = searched(ledger)
    missing = report(client, "0" * 32)
    assert missing.status_code == 404
    assert "0" * 32 in missing.json["detail"]
    for wrong, field in (
        ({"chunk_ids": []}, "chunk_ids"),
        ({"verdict": "bad"}, "verdict"),
        ({"user": "a\0"}, "user: has the control character U+0000"),
        ({"user": "\ud800"}, "user: is not valid Unicode"),
        ({"idempotency_key": "a\0"}, "idempotency_key: has the control character U+0000"),
        ({"trace_id": "a\0"}, "trace_id"),
        ({"stars": 5}, "stars"),
    ):
        answer = report(client, trace_id, **wrong)
        assert answer.status_code == 400
        assert field in answer.json["detail"]
    stranger = report(client, trace_id, chunk_ids=["z"])
    assert stranger.status_code == 400
    assert "'z'" in stranger.json["detail"]
    report(client, trace_id, idempotency_key="k")
    assert report(client, trace_id, idempotency_key="k", verdict="unhelpful").status_code == 409


def test_too_much_feedback_of_one_user_is_429_with_retry_after(
    client: FlaskClient, ledger: Ledger
) -> None:
    for n in range(3):
        assert report(client, searched(ledger, f"q {n}"), user="eve").status_code == 201
    answer = report(client, searched(ledger, "one more"), user="eve")
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0
    assert report(client, searched(ledger, "one more"), user="adam").status_code == 201


def test_a_trace_is_shown_with_what_was_said_of_it(client: FlaskClient, ledger: Ledger) -> None:
    trace_id = searched(ledger)
    report(client, trace_id, user="eve")
    shown = client.get(f"/debug/trace/{trace_id}").json
    assert shown["trace"]["timings"] == {"legs": 1.5}
    assert [hit["chunk_id"] for hit in shown["trace"]["hits"]] == ["a", "b", "c"]
    assert "how long" not in json.dumps(shown)
    assert [(o["verdict"], o["counted"]) for o in shown["outcomes"]] == [("helpful", ["a"])]
    old = searched(ledger, "old", at=time.time() - 30 * 86_400)
    for gone in (old, "nothing"):
        answer = client.get(f"/debug/trace/{gone}")
        assert answer.status_code == 404
        assert gone in answer.json["detail"]


def test_memory_is_shown_page_by_page(client: FlaskClient, ledger: Ledger) -> None:
    for n, chunk_ids in enumerate((["a", "b", "c"], ["a", "c"], ["c"])):
        report(client, searched(ledger, f"q {n}"), chunk_ids=chunk_ids, user=f"u{n}")
    seen, after = [], ""
    while after is not None:
        page = client.get(MEMORY, query_string={"limit": 1, "after": after}).json
        seen += [chunk["chunk_id"] for chunk in page["memories"]]
        after = page["next_after"]
    assert seen == ["c", "a", "b"]


def test_memory_goes_out_and_comes_back_the_same(client: FlaskClient, ledger: Ledger) -> None:
    report(client, searched(ledger), chunk_ids=["a", "b"])
    out = client.get(f"{MEMORY}/export")
    assert out.content_type == "application/x-ndjson"
    assert len(out.text.splitlines()) == 2
    assert client.post(f"{MEMORY}/reset", json={}).json == {"chunks": 2}
    assert client.get(f"{MEMORY}/export").text == ""
    stranger = out.text.splitlines()[0].replace('"a"', '"z"')
    back = client.post(f"{MEMORY}/import", data=out.text + "\n" + stranger)
    assert back.json == {"chunks": 2, "unknown": 1}
    assert client.get(f"{MEMORY}/export").text == out.text


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"utility": 5.0}, "utility"),
        ({"utility": float("nan")}, "utility"),
        ({"useful": -1}, "useful"),
        ({"centroid": None}, "contradict"),
        ({"questions": 9}, "contradict"),
        ({"centroid": [2.0, 0, 0, 0]}, "centroid"),
        ({"strange": 1}, "strange"),
    ],
)
def test_a_forged_line_is_refused_with_its_number(
    client: FlaskClient, ledger: Ledger, change: dict[str, Any], named: str
) -> None:
    report(client, searched(ledger))
    good = client.get(f"{MEMORY}/export").text
    bad = json.dumps(json.loads(good) | change)
    answer = client.post(f"{MEMORY}/import", data=good + bad)
    assert answer.status_code == 400
    assert "line 2" in answer.json["detail"]
    assert named in answer.json["detail"]


def test_memory_of_a_collection_with_tenants_needs_one(client: FlaskClient, ledger: Ledger) -> None:
    path = "/v1/collections/flats/memory"
    assert client.get(path).status_code == 400
    assert client.get(path, query_string={"tenant": "north"}).status_code == 404
    ledger.tenants.create("flats", "north")
    assert client.get(path, query_string={"tenant": "north"}).json["chunks"] == 0
    assert client.get(MEMORY, query_string={"tenant": "north"}).status_code == 400
    for answer in (
        client.get("/v1/collections/none/memory"),
        client.get("/v1/collections/none/memory/export"),
        client.post("/v1/collections/none/memory/import", data="{}"),
        client.post("/v1/collections/none/memory/reset", json={}),
    ):
        assert answer.status_code == 404


def test_the_command_line_shows_exports_resets_and_imports(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_of(ledger)

    def connect(_: str | None) -> Client:
        served = httpx.Client(transport=httpx.WSGITransport(app))
        return Client("http://127.0.0.1", http=served)

    def run(*arguments: str) -> str:
        shown = CliRunner().invoke(main, ["memory", *arguments, "-c", "papers"])
        assert shown.exit_code == 0, shown.output
        return shown.output

    monkeypatch.setattr(memory_commands, "connect", connect)
    report(app.test_client(), searched(ledger, vector=EAST), chunk_ids=["a", "b"])
    assert "2 chunks remembered, 2 for and 0 against them" in run("show")
    assert json.loads(run("show", "--json"))["chunks"] == 2
    file = str(tmp_path / "learned.jsonl")
    assert "2 chunks written" in run("export", file)
    assert "2 chunks forgotten" in run("reset", "--yes")
    assert json.loads(run("import", file, "--json")) == {"chunks": 2, "unknown": 0}
    assert "2 chunks remembered" in run("show")
    refused = CliRunner().invoke(main, ["memory", "reset", "-c", "papers"], input="n\n")
    assert refused.exit_code == 1
    missing = CliRunner().invoke(main, ["memory", "export", file, "-c", "none"])
    assert missing.exit_code == 1
    assert "does not exist" in missing.output
