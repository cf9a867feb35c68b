"""Attaching a table over the API and from the command line."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result
from crate_page import statement
from flask.testing import FlaskClient
from flask_openapi3 import OpenAPI
from search_parts import Embedder

from callslip.api.app import create_app
from callslip.cli.commands.collections import attach
from callslip.cli.main import main
from callslip.client import Client
from callslip.config.settings import Settings
from callslip.errors import StoreDown
from callslip.ingestion.maintenance.removal import drop_collection
from callslip.stores.crate.connection import Connection, Sql
from callslip.stores.ledger import Ledger
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.tasks import maintenance
from callslip.tasks.composition import Context

pytest_plugins = ["store_fixtures", "crate_fixtures"]


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as made:
        made.create()
        drop = lambda context, name: drop_collection(context.backend, name)  # noqa: E731
        monkeypatch.setattr(maintenance, "send_drop", drop)
        yield made


@pytest.fixture
def app(server: Settings, ledger: Ledger) -> OpenAPI:
    return app_of(server, ledger)


def app_of(settings: Settings, ledger: Ledger) -> OpenAPI:
    """The API over this ledger; collections of no store can be removed."""
    blobs = SimpleNamespace(count=lambda _: 0)
    context = Context(
        settings, local=True, store_kinds=(), ledger=ledger, blobs=blobs, embedder=Embedder()
    )
    return create_app(context)


@pytest.fixture
def table(server: Settings, raw: Connection) -> Iterator[str]:
    """The documented table with one row, made by no hand of Callslip's; its name without quotes."""
    name = f"films{time.monotonic_ns()}"
    quoted = f'"{server.crate.schema_name}"."{name}"'
    raw.run(Sql(statement("The table", quoted).replace("FLOAT_VECTOR(384)", "FLOAT_VECTOR(2)")))
    row = ("Storm", "A ship meets the wind.", [1, 0], {})
    names = '("title_fs", "content_fs", "xs", "metadata")'
    raw.run(Sql(f"INSERT INTO {quoted} {names} VALUES (?, ?, ?, ?)", row))
    raw.run(Sql(f"REFRESH TABLE {quoted}"))
    yield f"{server.crate.schema_name}.{name}"
    raw.run(Sql(f"DROP TABLE IF EXISTS {quoted}"))


@pytest.fixture
def client(app: OpenAPI) -> FlaskClient:
    return app.test_client()


def post(client: FlaskClient, body: Any) -> Any:
    data = json.dumps(body)
    return client.post("/v1/attachments", data=data, content_type="application/json")


def rows(raw: Connection, table: str) -> Any:
    schema, name = table.split(".")
    return raw.run(Sql(f'SELECT "title_fs" FROM "{schema}"."{name}"'))


def test_a_table_is_attached_shown_and_forgotten(
    client: FlaskClient, ledger: Ledger, raw: Connection, table: str
) -> None:
    body = {"name": "films", "table": table}
    made = post(client, body)
    assert made.status_code == 201
    assert made.json["attached"] == {"table": table, "vectors": "none", "server": None}
    assert (made.json["store"], made.json["dimension"]) == ("attached", 2)
    again = post(client, body)
    assert (again.status_code, again.json) == (200, made.json)
    assert post(client, {**body, "vectors": "ours"}).status_code == 409
    assert client.get("/v1/collections").json["collections"] == [made.json]
    assert client.delete("/v1/collections/films").status_code == 202
    assert client.get("/v1/collections").json["collections"] == []
    assert rows(raw, table) == [["Storm"]]
    assert post(client, {**body, "vectors": "ours"}).json["embedder"] == "tiny"


def test_what_writes_is_refused_by_name(client: FlaskClient, table: str) -> None:
    assert post(client, {"name": "films", "table": table}).status_code == 201
    calls: list[tuple[str, Any]] = [
        ("/v1/collections/films/documents", {"name": "a", "text": "hello"}),
        ("/v1/collections/films/facets/rebuild", {"facet": "all"}),
        ("/v1/collections", {"name": "films", "store": "chroma"}),
    ]
    for path, body in calls:
        refused = client.post(path, data=json.dumps(body), content_type="application/json")
        assert refused.status_code == 409, path
        assert refused.json["type"].endswith(":attached-read-only")
        assert "films" in refused.json["detail"]
    made = client.post("/v1/collections/films/tenants", json={"tenant": "ann"})
    assert made.status_code == 400


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "status", "named"),
    [
        ({"table": 7}, 400, "table"),
        ({"table": None}, 400, "table"),
        ({"table": ["a"]}, 400, "table"),
        ({"table": ""}, 400, "table"),
        ({"table": "x" * 601}, 400, "table"),
        ({"table": "a b"}, 400, "a b"),
        ({"table": "doc.t; DROP TABLE x"}, 400, "no name of a table"),
        ({"table": '"\x00"'}, 404, "may not be read"),
        ({"table": "doc.nobody"}, 404, "doc.nobody"),
        ({"table": "\ud800"}, 400, "table"),
        ({"name": ""}, 400, "name"),
        ({"name": "a b"}, 400, "name"),
        ({"name": 7}, 400, "name"),
        ({"vectors": "mine"}, 400, "vectors"),
        ({"vectors": True}, 400, "vectors"),
        ({"more": 1}, 400, "more"),
    ],
)
def test_a_wrong_request_is_named(
    client: FlaskClient, ledger: Ledger, table: str, change: dict[str, Any], status: int, named: str
) -> None:
    answer = post(client, {"name": "films", "table": table} | change)
    assert answer.status_code == status
    assert named in answer.json["detail"]
    assert ledger.collections.all() == []


def test_a_crate_that_is_away_or_not_set_up_is_said(
    client: FlaskClient, ledger: Ledger, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object) -> None:
        raise StoreDown("CrateDB does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "run", down)
        answer = post(client, {"name": "films", "table": table})
    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
    answer = post(app_of(Settings(), ledger).test_client(), {"name": "films", "table": table})
    assert answer.status_code == 400
    assert "no CrateDB: crate.url is not set" in answer.json["detail"]
    assert "CALLSLIP_CRATE__URL" in answer.json["advice"]


@pytest.fixture
def run(app: OpenAPI, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command against the API."""

    def connect(_: str | None) -> Client:
        return Client("http://127.0.0.1", http=httpx.Client(transport=httpx.WSGITransport(app)))

    monkeypatch.setattr(attach, "connect", connect)

    def command(*words: str) -> Result:
        return CliRunner().invoke(main, words)

    return command


def test_the_command_line_attaches_and_detaches(run: Any, raw: Connection, table: str) -> None:
    result = run("attach", "crate", table, "--name", "films")
    assert result.exit_code == 0
    assert f"films: table {table}, 2 dimensions, cosine; only read" in result.output
    assert "by their words alone" in result.output
    shown = json.loads(run("attach", "crate", table, "--name", "films", "--json").output)
    assert shown["attached"]["table"] == table
    refused = run("attach", "crate", table, "--name", "films", "--vectors", "ours")
    assert (refused.exit_code, "exists" in refused.output) == (1, True)
    assert run("attach", "crate", table).exit_code == 2
    assert "is as it was" in run("detach", "films").output
    assert run("detach", "films").exit_code == 1
    assert rows(raw, table) == [["Storm"]]
    json_result = run("attach", "crate", table, "--name", "films", "--vectors", "ours", "--json")
    assert json.loads(json_result.output)["embedder"] == "tiny"


def test_a_collection_that_is_no_table_is_not_detached(run: Any, ledger: Ledger) -> None:
    schema = CollectionSchema("papers", VectorSpec(2))
    ledger.collections.create(schema, store="chroma", embedder="tiny", analyzer="1")
    result = run("detach", "papers")
    assert (result.exit_code, "is not attached" in result.output) == (1, True)
    assert ledger.collections.get("papers").name == "papers"
