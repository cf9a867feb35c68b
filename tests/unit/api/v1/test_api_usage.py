"""What language models have used, at the server and with `callslip usage`, over a real ledger."""

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

from callslip.cli.commands.installation import usage as usage_commands
from callslip.cli.main import main
from callslip.client import Client
from callslip.config.settings import LlmSettings, Settings
from callslip.models.language_models.completion import Usage
from callslip.stores.ledger import Ledger
from callslip.stores.ledger.answers.model_usage import DAY_SECONDS
from callslip.stores.records import CollectionSchema, VectorSpec

PRICES = LlmSettings(tokens_per_day=10_000, input_price=2.0, output_price=10.0)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    made = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    made.create()
    for name, tenants in (("papers", False), ("flats", True)):
        schema = CollectionSchema(name, VectorSpec(4), tenants=tenants)
        made.collections.create(schema, store="memory", embedder="tiny", analyzer="1")
    made.tenants.create("flats", "북쪽")
    use(made, "papers", "", 1_000, 100)
    use(made, "papers", "", 500, 0, days=2, model="large")
    use(made, "flats", "북쪽", 200, 20)
    use(made, "flats", "gone", 100, 10)
    yield made
    made.close()


def use(
    ledger: Ledger,
    collection: str,
    tenant: str,
    read: int,
    written: int,
    *,
    days: int = 0,
    model: str = "small",
) -> None:
    """A call, so many days ago."""
    now = time.time() - days * DAY_SECONDS
    given = ledger.model_usage.reserve(collection, tenant, model, 1, ceiling=0, now=now)
    ledger.model_usage.settle(given, Usage(read, written))


@pytest.fixture
def client(ledger: Ledger) -> FlaskClient:
    return app_over(Settings(llm=PRICES), ledger=ledger).test_client()


def request(client: FlaskClient, **query: Any) -> Any:
    return client.get("/v1/usage", query_string=query)


def test_usage_is_told_by_day_and_model_with_its_cost(client: FlaskClient) -> None:
    found = request(client, collection="papers").json
    first, second = found["usage"]
    assert (first["model"], first["calls"], first["cost"]) == ("small", 1, 0.003)
    assert (second["model"], second["input_tokens"], second["cost"]) == ("large", 500, 0.001)
    assert first["day"] == time.strftime("%Y-%m-%d", time.gmtime())
    assert found["total"] == {
        "calls": 2,
        "input_tokens": 1_500,
        "output_tokens": 100,
        "cost": 0.004,
    }
    today = found["today"]
    assert (today["used"], today["ceiling"], today["left"]) == (1_100, 10_000, 8_900)
    assert 0 < today["renewed_at"] - time.time() <= DAY_SECONDS
    assert [row["model"] for row in request(client, collection="papers", days=2).json["usage"]] == [
        "small"
    ]


def test_all_places_are_summed_and_have_no_ceiling_together(client: FlaskClient) -> None:
    found = request(client).json
    assert (found["collection"], found["today"]) == (None, None)
    assert found["total"]["input_tokens"] == 1_800
    flats = request(client, collection="flats").json
    assert (flats["total"]["input_tokens"], flats["today"]) == (300, None)


def test_a_tenant_has_a_ceiling_of_its_own(client: FlaskClient) -> None:
    found = request(client, collection="flats", tenant="북쪽").json
    assert (found["total"]["input_tokens"], found["today"]["left"]) == (200, 9_780)


def test_what_was_deleted_is_still_told(client: FlaskClient, ledger: Ledger) -> None:
    gone = request(client, collection="flats", tenant="gone").json
    assert (gone["total"]["input_tokens"], gone["today"]) == (100, None)
    ledger.collections.delete("papers")
    assert request(client, collection="papers").json["total"]["calls"] == 2


def test_what_never_was_and_what_makes_no_sense_is_an_error(client: FlaskClient) -> None:
    assert request(client, collection="none").json["type"].endswith("collection-not-found")
    assert (
        request(client, collection="flats", tenant="none").json["type"].endswith("tenant-not-found")
    )
    assert request(client, collection="papers", tenant="x").status_code == 400
    assert request(client, tenant="x").status_code == 400
    for days in (0, 401, "x"):
        assert request(client, days=days).status_code == 400


def test_without_a_ceiling_nothing_is_left_to_tell(
    ledger: Ledger,
) -> None:
    app = app_over(Settings(llm=LlmSettings(tokens_per_day=0)), ledger=ledger)
    today = request(app.test_client(), collection="papers").json["today"]
    assert (today["ceiling"], today["left"], today["used"]) == (0, None, 1_100)


def test_the_command_line_shows_a_table(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_over(Settings(llm=PRICES), ledger=ledger)

    def connect(_: str | None) -> Client:
        served = httpx.Client(transport=httpx.WSGITransport(app))
        return Client("http://127.0.0.1", http=served)

    def run(*arguments: str) -> str:
        shown = CliRunner().invoke(main, ["usage", *arguments])
        assert shown.exit_code == 0, shown.output
        return shown.output

    monkeypatch.setattr(usage_commands, "connect", connect)
    head, small, large, total, left = run("-c", "papers").splitlines()
    assert head.split() == ["day", "model", "calls", "input", "tokens", "output", "tokens", "cost"]
    assert small.split()[1:] == ["small", "1", "1,000", "100", "0.0030"]
    assert large.split()[1:] == ["large", "1", "500", "0", "0.0010"]
    assert total.split() == ["total", "2", "1,500", "100", "0.0040"]
    assert left == "Today 8,900 of 10,000 tokens are left."
    assert len({len(line) for line in (head, small, large, total)}) == 1
    assert "left" not in run()
    assert json.loads(run("--json", "-c", "flats"))["total"]["input_tokens"] == 300
    ledger.model_usage.trim(time.time() + 2 * DAY_SECONDS)
    assert run("--days", "1") == "No language model was used in 1 day.\n"
