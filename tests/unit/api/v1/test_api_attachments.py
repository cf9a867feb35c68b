"""Attached Chroma collections: who sees the address of the server, and names that are refused."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from context_parts import lone_app
from flask import Flask
from flask.testing import FlaskClient

from callslip.callers import Permission
from callslip.config.settings import ChromaSettings
from callslip.errors import InvalidRequest, StoreDown
from callslip.stores.chroma.attached.server import ChromaServer
from callslip.stores.chroma.attached.store import AttachedChroma
from callslip.stores.ledger import ATTACHED_CHROMA, Attachment, KeyGrant, Ledger
from callslip.stores.records import CollectionSchema, VectorSpec

ADDRESS = "http://127.0.0.1:9"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as made:
        made.create()
        made.collections.create(
            CollectionSchema("films", VectorSpec(2)),
            store=ATTACHED_CHROMA,
            embedder="unknown",
            analyzer="unknown",
            attachment=Attachment("default_database", "films", "none", ADDRESS, "secret"),
        )
        yield made


@pytest.fixture
def app(ledger: Ledger, tmp_path: Path) -> Iterator[Flask]:
    with lone_app(ledger, tmp_path) as made:
        yield made


def client(app: Flask, ledger: Ledger, *permissions: Permission) -> FlaskClient:
    made = app.test_client()
    text, _ = ledger.api_keys.create("-".join(permissions), KeyGrant(frozenset(permissions)))
    made.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {text}"
    return made


@pytest.mark.parametrize(
    ("permissions", "shown"), [(("read",), False), (("read", "write"), False), (("admin",), True)]
)
def test_only_an_administrator_sees_the_address(
    app: Flask, ledger: Ledger, permissions: tuple[Permission, ...], shown: bool
) -> None:
    someone = client(app, ledger, *permissions)
    (record,) = someone.get("/v1/collections").json["collections"]
    assert record["attached"]["table"] == "default_database/films"
    assert record["attached"]["server"] == (ADDRESS if shown else None)
    page = someone.get("/?collection=films")
    assert "collection in Chroma" in page.text
    assert (ADDRESS in page.text) is shown


def test_the_error_of_a_search_has_no_address(ledger: Ledger) -> None:
    store = AttachedChroma(ChromaSettings(), ledger)
    with closing(store), pytest.raises(StoreDown, match="does not answer") as down:
        store.count("films")
    assert "127.0.0.1" not in f"{down.value.detail} {down.value.advice}"


@pytest.mark.parametrize("name", [".", ".."])
@pytest.mark.parametrize("what", ["tenant", "database", "collection"])
def test_names_that_are_parts_of_addresses_are_refused(
    app: Flask, ledger: Ledger, what: str, name: str
) -> None:
    body = {"name": "books", "chroma": {"url": ADDRESS, "collection": "books"} | {what: name}}
    refused = client(app, ledger, "admin").post("/v1/attachments", json=body)
    assert (refused.status_code, f"the {what} of" in refused.json["detail"]) == (400, True)
    names = {"tenant": "t", "database": "d", "collection": "c"} | {what: name}
    stored = Attachment(names["database"], names["collection"], "none", ADDRESS, names["tenant"])
    with closing(ChromaServer(ADDRESS, (), None)) as server, pytest.raises(InvalidRequest):
        server.known(stored)
