"""Attaching a Chroma collection, or a folder of Chroma's, by the API and the command line."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from chroma_server import TENANT
from click.testing import CliRunner, Result
from flask.testing import FlaskClient
from flask_openapi3 import OpenAPI
from search_parts import Embedder

from callslip.api.app import create_app
from callslip.cli.commands.collections import attach
from callslip.cli.main import main
from callslip.client import Client
from callslip.config.settings import Settings
from callslip.errors import InvalidRequest, StartError
from callslip.ingestion.maintenance.removal import drop_collection
from callslip.stores.chroma.connection import Connection
from callslip.stores.ledger import Ledger
from callslip.tasks import maintenance
from callslip.tasks.composition import Context
from callslip.workers.supervision import chroma_folder, services
from callslip.workers.supervision.child import Part
from callslip.workers.supervision.chroma_folder import served_copy

pytest_plugins = ["store_fixtures"]

FAQ = {"east": [1.0, 0.0], "north": [0.0, 1.0]}
"""Documents and their vectors."""


class Both(Embedder):
    """Embeds passages too."""

    def passages(self, texts: list[str]) -> Any:
        return np.array([FAQ[text] for text in texts], np.float32)


@pytest.fixture(scope="module")
def faq(chroma_url: str) -> Iterator[str]:
    """The name of a collection that another program made."""
    name = f"faq.{time.monotonic_ns()}"
    with closing(Connection(chroma_url, TENANT)) as connection:
        made = connection.client().create_collection(name, embedding_function=None)
        texts = list(FAQ)
        made.add(ids=texts, embeddings=list(FAQ.values()), documents=texts)
        yield name
        connection.client().delete_collection(name)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as made:
        made.create()
        drop = lambda context, name: drop_collection(context.backend, name)  # noqa: E731
        monkeypatch.setattr(maintenance, "send_drop", drop)
        yield made


@pytest.fixture
def app(ledger: Ledger, tmp_path: Path) -> Iterator[OpenAPI]:
    settings = Settings(data_dir=tmp_path)
    blobs = SimpleNamespace(count=lambda _: 0)
    context = Context(
        settings, local=True, store_kinds=(), ledger=ledger, blobs=blobs, embedder=Both()
    )
    yield create_app(context)
    context.close()


@pytest.fixture
def client(app: OpenAPI) -> FlaskClient:
    return app.test_client()


def post(client: FlaskClient, path: str, body: Any) -> Any:
    return client.post(path, data=json.dumps(body), content_type="application/json")


def body_of(url: str, faq: str, **more: Any) -> dict[str, Any]:
    return {"name": "faq", "chroma": {"url": url, "collection": faq, "tenant": TENANT}, **more}


def test_a_collection_is_attached_searched_shown_and_forgotten(
    client: FlaskClient, chroma_url: str, faq: str
) -> None:
    body = body_of(chroma_url, faq, vectors="ours")
    made = post(client, "/v1/attachments", body)
    assert made.status_code == 201
    expected = {"table": f"default_database/{faq}", "vectors": "ours", "server": chroma_url}
    assert made.json["attached"] == expected
    assert (made.json["store"], made.json["embedder"]) == ("attached-chroma", "tiny")
    assert TENANT not in made.text
    again = post(client, "/v1/attachments", body)
    assert (again.status_code, again.json) == (200, made.json)
    response = post(client, "/v1/search", {"collection": "faq", "query": "north", "top": 1})
    assert [hit["text"] for hit in response.json["hits"]] == ["north"]
    refused = post(client, "/v1/collections/faq/documents", {"name": "a", "text": "hello"})
    assert (refused.status_code, "faq" in refused.json["detail"]) == (409, True)
    listed = client.get("/v1/collections").text
    again = post(client, "/v1/attachments", {**body, "vectors": "none"})
    assert again.status_code == 409
    assert client.delete("/v1/collections/faq").status_code == 202
    assert client.get("/v1/collections").json["collections"] == []
    assert post(client, "/v1/attachments", {**body, "vectors": "none"}).status_code == 201
    page = client.get("/?collection=faq").text
    assert f"default_database/{faq}</code> is a collection in Chroma at <code>{chroma_url}" in page
    assert TENANT not in page + listed


@pytest.mark.parametrize(
    ("change", "status", "named"),
    [
        ({"table": "doc.t"}, 400, "either table or chroma"),
        ({"chroma": None}, 400, "either table or chroma"),
        ({"chroma": {"url": "http://127.0.0.1:1"}}, 400, "collection"),
        ({"chroma": {"url": "x", "collection": "a"}}, 400, "address"),
        ({"chroma": {"url": "http://10.0.0.1", "collection": "a"}}, 422, "10.0.0.1"),
        ({"chroma": {"url": "http://127.0.0.1:9", "collection": "a"}}, 503, "127.0.0.1:9"),
        ({"chroma": {"url": 7, "collection": "a"}}, 400, "url"),
        ({"chroma": {"url": "http://a", "collection": "a", "more": 1}}, 400, "more"),
        ({"vectors": "previous"}, 400, "no previous embedder"),
        ({"vectors": "mine"}, 400, "vectors"),
        ({"name": "a b"}, 400, "name"),
    ],
)
def test_a_wrong_request_is_named(
    client: FlaskClient,
    ledger: Ledger,
    chroma_url: str,
    faq: str,
    change: dict[str, Any],
    status: int,
    named: str,
) -> None:
    answer = post(client, "/v1/attachments", body_of(chroma_url, faq) | change)
    assert (answer.status_code, named in answer.json["detail"]) == (status, True), answer.json
    assert ledger.collections.all() == []


@pytest.fixture
def run(app: OpenAPI, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command against the API."""

    def connect(_: str | None) -> Client:
        return Client("http://127.0.0.1", http=httpx.Client(transport=httpx.WSGITransport(app)))

    monkeypatch.setattr(attach, "connect", connect)

    def command(*words: str) -> Result:
        return CliRunner().invoke(main, words)

    return command


def test_the_command_line_attaches_and_detaches(run: Any, chroma_url: str, faq: str) -> None:
    result = run("attach", "chroma", chroma_url, faq, "--tenant", TENANT)
    assert result.exit_code == 0, result.output
    assert f"{faq}: default_database/{faq} at {chroma_url}, 2 dimensions, cosine" in result.output
    assert f"callslip search QUESTION -c {faq}" in result.output
    words = ("attach", "chroma", chroma_url, faq, "--tenant", TENANT, "--name", "other")
    of_unknown = run(*words, "--vectors", "none").output
    assert "query_embedding" in of_unknown
    assert "callslip search" not in of_unknown, "words cannot be searched there"
    shown = json.loads(run(*words, "--vectors", "none", "--json").output)
    assert shown["attached"]["vectors"] == "none"
    assert "is as it was" in run("detach", "other").output
    missing = run("attach", "chroma", chroma_url, "nobody", "--tenant", TENANT)
    assert (missing.exit_code, "no collection" in missing.output) == (1, True)
    assert "--name" in run("attach", "chroma", chroma_url, "a b").output


WRITE = """
import sys, chromadb
client = chromadb.PersistentClient(sys.argv[1])
made = client.create_collection("old-faq", embedding_function=None)
made.add(ids=["1", "2"], embeddings=[[1, 0], [0, 1]], documents=["east", "north"])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that another program wrote with the vendor's embedded client."""
    made = tmp_path_factory.mktemp("persistent") / "chroma_db"
    subprocess.run([sys.executable, "-c", WRITE, str(made)], check=True)
    return made


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.long
def test_a_folder_is_searched_by_a_server_on_a_copy_and_stays_as_it_is(
    run: Any, client: FlaskClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(folder)
    texts: list[list[str]] = []
    addresses: list[str] = []

    def search(_: Any) -> None:
        """What happens while the command waits."""
        response = post(client, "/v1/search", {"collection": "old-faq", "query": "east", "top": 1})
        texts.append([hit["text"] for hit in response.json["hits"]])
        (record,) = client.get("/v1/collections").json["collections"]
        addresses.append(record["attached"]["server"])
        others = f"{addresses[-1]}/api/v2/tenants/default_tenant/databases/default_database"
        assert httpx.get(f"{others}/collections").status_code != 200

    monkeypatch.setattr(chroma_folder, "_wait", search)
    for _ in range(2):  # the same command again serves another copy
        result = run("attach", "chroma", str(folder), "old-faq")
        assert result.exit_code == 0, result.output
        assert "until Ctrl-C" in result.output
    assert texts == [["east"], ["east"]]
    assert addresses[0] != addresses[1]
    with pytest.raises(httpx.ConnectError):
        httpx.get(addresses[1])
    assert contents(folder) == before
    away = post(client, "/v1/search", {"collection": "old-faq", "query": "east"})
    assert (away.status_code, "does not answer" in away.json["detail"]) == (503, True)
    assert addresses[1] not in away.json["detail"]  # every reader sees it


def test_a_copy_is_removed_at_the_end_also_after_an_error(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def interrupted() -> None:
        with served_copy(folder, lambda _: None) as (url, tenant, _):
            (copy,) = tmp_path.iterdir()
            assert copy.stat().st_mode & 0o077 == 0
            with closing(Connection(url, tenant)) as connection:
                assert connection.names() == ["old-faq"]
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_folder_of_chromas_is_named(run: Any, tmp_path: Path) -> None:
    for path in (tmp_path / "nobody", tmp_path):
        result = run("attach", "chroma", str(path), "faq")
        assert (result.exit_code, "chroma.sqlite3" in result.output) == (1, True)
    assert "--tenant" in run("attach", "chroma", str(tmp_path), "faq", "--tenant", "a").output
    (tmp_path / "chroma.sqlite3").write_bytes(b"this is no database" * 100)
    with pytest.raises(InvalidRequest, match="cannot be copied"), served_copy(tmp_path, print):
        pass


def test_a_port_that_another_program_takes_is_left_to_it(
    folder: Path, chroma_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, free = int(chroma_url.rpartition(":")[2]), services.free_ports(1)[0]
    monkeypatch.setattr(services, "free_ports", lambda _: [taken, free])
    with served_copy(folder, lambda _: None) as (url, _, _wait):
        assert url.endswith(f":{free}")


def test_a_server_that_does_not_start_on_the_copy_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Part("chroma", (sys.executable, "-c", "exit('damaged')"), {}, lambda _: False)
    monkeypatch.setattr(services, "chroma", lambda *_: broken)
    with pytest.raises(StartError, match="does not start on the copy: damaged"):
        served_copy(folder, lambda _: None).__enter__()
