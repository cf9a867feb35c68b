"""What a search is refused for: a missing collection before other failures, a wrong body."""

from typing import Any

import pytest
from context_parts import app_over
from flask.testing import FlaskClient

from callslip.api.v1 import searches
from callslip.errors import BrokerDown, Overloaded
from callslip.stores.ledger import Ledger

pytest_plugins = ["ledger_fixtures"]


@pytest.fixture
def client(ledger: Ledger) -> FlaskClient:
    return app_over(ledger=ledger).test_client()


@pytest.mark.parametrize(
    ("error", "status"), [(Overloaded("no worker"), 503), (BrokerDown("it is away"), 503)]
)
def test_what_cannot_be_queued_names_a_missing_collection_first(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def fails(*_: Any) -> None:
        raise error

    monkeypatch.setattr(searches, "ask_encoded", fails)
    for collection, expected in (("papers", status), ("nowhere", 404)):
        body = {"collection": collection, "query": "leave"}
        assert client.post("/v1/search", json=body).status_code == expected


@pytest.mark.parametrize("name", ["two words", "x" * 65, "a\nb", "휴가 규정"])
def test_a_text_that_is_no_name_enters_no_queue(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("the search was queued")

    monkeypatch.setattr(searches, "ask_encoded", never)
    answer = client.post("/v1/search", json={"collection": name, "query": "leave"})
    assert answer.status_code == 404
    assert answer.json is not None
    assert answer.json["type"].endswith("collection-not-found")


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"collection": "papers"}', "body: query is missing"),
        ('{"collection": "papers", "query": "a", "as_of": "soon"}', "as_of: is no ISO 8601 date"),
        ("[]", "body: is not a JSON object sent as application/json"),
        ("{", "body: is not a JSON object sent as application/json"),
        ('{"query": "\\udc00', "body: is not a JSON object sent as application/json"),
        (b'{"query": "\xff"}', "body: is not a JSON object sent as application/json"),
        (
            '{"collection": "a", "query": "b", "operation_level": "all"}',
            "operation_level: Input should be a valid integer, unable to parse string as an"
            " integer; operation_level: Input should be 'every'",
        ),
        (
            '{"collection": "a", "query": "b", "replay": "x"}',
            "replay: does not have the form that GET /openapi.json gives",
        ),
        ('{"collection": "\\udc00", "query": "b"}', "collection: is not valid Unicode"),
        ('{"collection": "a", "query": "b", "top": true}', "top: is not a whole number"),
        ('{"top": ' + "9" * 5000 + "}", "the JSON has a number with too many digits"),
        (
            '{"collection": "papers", "query_embedding": [' + "1," * 65_536 + "1]}",
            "query_embedding: List should have at most 65536 items",
        ),
    ],
)
def test_what_is_wrong_with_a_search_is_named(
    client: FlaskClient, body: str | bytes, message: str
) -> None:
    answer = client.post("/v1/search", data=body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json is not None
    assert answer.json["detail"].startswith(message)


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"name": "a b"}, "name", "is no name: at most 64 letters, digits"),
        ({"options": {"dictionary": {"": ["x"]}}}, "options.dictionary", "a name in it: is empty"),
        ({"options": {"dictionary": {"x" * 300: []}}}, "options.dictionary", "a name in it: "),
        ({"options": {"dictionary": {"a": [""]}}}, "options.dictionary.a.0", "is empty"),
        (
            {"options": {"rules": [{"set": {"b" * 150: ""}}]}},
            f"options.rules.0.set.{'b' * 100}",
            "",
        ),
    ],
)
def test_the_name_of_a_field_is_its_path_alone(
    client: FlaskClient, body: dict[str, Any], field: str, message: str
) -> None:
    answer = client.post("/v1/collections", json={"name": "made", **body})
    assert answer.status_code == 400
    assert answer.json is not None
    assert answer.json["errors"][0]["field"] == field
    assert answer.json["errors"][0]["message"].startswith(message)
