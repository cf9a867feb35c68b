"""A hidden collection or id is answered as an unknown one, in valid and in invalid requests."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from context_parts import lone_app
from flask import Flask
from flask.testing import FlaskClient
from learned import say, trace
from ledger_moves import submission
from long_forms import sample

from callslip.api.v1 import feedback
from callslip.callers import PERMISSIONS
from callslip.config.settings import Settings
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.ledger import KeyGrant, Ledger
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.tasks import facets, ingest, maintenance

HIDDEN, UNKNOWN = "hid", "qzx"
"""A collection without tenants, and one that does not exist: names of one length."""

LESSER = frozenset(PERMISSIONS) - {"admin"}

LIMITS: dict[str, dict[str, Any]] = {
    "tenant": {"tenants": frozenset({"acme"})},
    "tenant, no admin": {"tenants": frozenset({"acme"}), "permissions": LESSER},
    "collection": {"collections": frozenset({"papers"})},
    "collection, no admin": {"collections": frozenset({"papers"}), "permissions": LESSER},
    "both": {"collections": frozenset({"shared", HIDDEN, UNKNOWN}), "tenants": frozenset({"acme"})},
}

ID = "0" * 32


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """Two collections without tenants, those of an FAQ, and one with the tenants acme and other."""
    made = Ledger(f"sqlite:///{tmp_path_factory.mktemp('hidden') / 'ledger.db'}")
    made.create()
    for name in ("papers", HIDDEN, f"{HIDDEN}__question", "shared"):
        schema = CollectionSchema(name, VectorSpec(4), tenants=name == "shared")
        made.collections.create(schema, store="memory", embedder="tiny", analyzer="1")
    for tenant in ("acme", "other"):
        made.tenants.create("shared", tenant)
    yield made
    made.close()


@pytest.fixture(scope="module")
def app(ledger: Ledger, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    with (
        lone_app(ledger, tmp_path_factory.mktemp("app")) as made,
        pytest.MonkeyPatch.context() as m,
    ):
        for module, name in (
            (ingest, "send_all"),
            (maintenance, "send_removal"),
            (facets, "request_rebuild"),
        ):
            m.setattr(module, name, lambda *_: True)
        m.setattr(feedback, "PATIENCE_SECONDS", 0.0)
        yield made


@pytest.fixture(params=LIMITS)
def limited(app: Flask, ledger: Ledger, request: pytest.FixtureRequest) -> FlaskClient:
    """A client whose key is limited."""
    return client(app, ledger, **LIMITS[request.param])


def client(app: Flask, ledger: Ledger, **grant: Any) -> FlaskClient:
    made = app.test_client()
    given = KeyGrant(**{"permissions": frozenset(PERMISSIONS)} | grant)
    text, _ = ledger.api_keys.create(uuid.uuid4().hex, given)
    made.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {text}"
    return made


def filled(ledger: Ledger, collection: str, tenant: str, **more: Any) -> dict[str, str]:
    """Ids of a document, a search, feedback and a webhook in a collection."""
    words, batch = uuid.uuid4().hex, uuid.uuid4().hex
    new = replace(submission(words, words), batch=batch, **more)
    item = ledger.documents.submit(collection, new, uuid.uuid4().hex, tenant=tenant)
    settings, search = Settings(), trace(words, ["c1"], collection=collection, tenant=tenant)
    Learning(ledger, settings.memory, settings.traces).record([search])
    hook = ledger.webhooks.create("https://example.org", "s", ["document.live"], collection)
    return {
        "document_id": item.document_id,
        "trace_id": search.trace_id,
        "feedback_id": say(ledger, search.trace_id, ["c1"]).outcome_id,
        "batch_id": batch,
        "webhook_id": hook.webhook_id,
    }


Call = tuple[str, str, dict[str, Any]]
"""The method, the path and the other arguments of a request."""

QUERIES: list[dict[str, Any]] = [
    {},
    {"query_string": {"bogus": "1"}},
    {"query_string": {"start": "-1", "limit": "0", "after": "zzz", "version": "0", "width": "x"}},
    {"query_string": {"tenant": "acme"}},
    {"query_string": {"tenant": "other"}},
]

BODIES: list[dict[str, Any]] = [
    {"json": {"bogus": "x"}},
    {"json": {"version": 0, "max_tokens": -1}},
    {"json": {"version": 1}},
    {"json": {"texts": {"c1": "words"}}},
    {"json": {"text": "hello", "name": "n"}},
    {"json": {"text": "hello", "name": "n", "tenant": "acme"}},
    {"json": {"documents": [], "tenant": "acme"}},
    {"json": {"by": "kind", "tenant": "acme"}},
    {"json": {"tenant": "acme"}},
    {"json": {"tenant": "other"}},
    {"json": {"ids": [1]}},
    {"json": {"rows": [{"id": 1, "question": "q", "answer": "a"}]}},
    {"data": b"{", "content_type": "application/json"},
    {"data": {"text": "hello"}},
]
"""Requests that fit some route, and no route."""

VARIANTS = 6
"""Of the requests of each method of a route; which ones differs from route to route."""


def calls(app: Flask, argument: str, value: str) -> Iterator[Call]:
    """Every route with an argument, in some variants."""
    for rule in app.url_map.iter_rules():
        if argument not in rule.arguments or rule.endpoint == "static":
            continue
        path = rule.rule.replace(f"<string:{argument}>", value)
        for other in rule.arguments - {argument}:
            for kind in ("string", "path"):
                path = path.replace(f"<{kind}:{other}>", "1")
        for method in sorted((rule.methods or set()) - {"HEAD"}):
            variants = QUERIES if method in ("GET", "OPTIONS") else QUERIES + BODIES
            for variant in sample(variants, VARIANTS, f"{method} {rule.rule}"):
                yield method, path, variant


def same(
    client: FlaskClient, hidden: Call, unknown: Call, *names: str, refused: bool = True
) -> None:
    """Check that both requests are refused with the same response, but for the names."""
    answers = []
    for method, path, more in (hidden, unknown):
        answer = client.open(path, method=method, **more)
        text = answer.text
        for name in names:
            text = text.replace(name, "NAME")
        allow = answer.headers.get("Allow")
        answers.append((answer.status_code, text, answer.headers.get("Content-Type"), allow))
    assert answers[0] == answers[1], (hidden, answers)
    assert answers[0][0] >= 400 or hidden[0] == "OPTIONS" or not refused, hidden
    assert answers[0][0] < 500, (hidden, answers)


@pytest.mark.long
def test_a_route_of_a_hidden_collection_answers_as_that_of_an_unknown_one(
    app: Flask, limited: FlaskClient
) -> None:
    pairs = zip(calls(app, "name", HIDDEN), calls(app, "name", UNKNOWN), strict=True)
    walked = 0
    for hidden, unknown in pairs:
        same(limited, hidden, unknown, HIDDEN, UNKNOWN)
        walked += 1
    assert walked > 200


SEARCH, ASK = {"query": "x"}, {"question": "x"}

VECTOR = {"query_embedding": [1, 0, 0, 0]}


def named(name: str, tenants: tuple[str, ...] = ("", "acme", "other")) -> Iterator[Call]:
    """Requests that name a collection elsewhere than in their path."""
    for tenant in tenants:
        scope = {"collection": name} | ({"tenant": tenant} if tenant else {})
        for path, body in (
            ("/v1/search", SEARCH),
            ("/v1/search", SEARCH | {"top": -1}),
            ("/v1/search", SEARCH | {"having_all": {"a ??": 1}}),
            ("/v1/answer", ASK),
            ("/v1/answer", ASK | {"thread_id": "t"}),
            ("/v1/dead-letters/retry", {}),
            ("/v1/dead-letters/retry", {"older_than": -1}),
            ("/v1/webhooks", {"url": "https://192.0.2.1/", "events": ["document.live"]}),
        ):
            yield "POST", path, {"json": scope | body}
        for path in ("/v1/usage", "/v1/dead-letters", "/", "/page/documents", "/page/proposals"):
            for more in ({}, {"days": "0", "limit": "0", "before": "x"}):
                yield "GET", path, {"query_string": scope | more}
        yield "GET", "/", {"query_string": scope | {"q": "x"}}
        yield "POST", "/page/answer", {"data": scope | {"q": "x", "ask": "1"}}
        for invoker, content in (
            ("WeaviateSimilaritySearchInvoker", "x"),
            ("WeaviateSimilaritySearchRequestInvoker", VECTOR),
            ("WeaviateVectorSimilaritySearchInvoker", VECTOR),
            ("WeaviatePersistInvoker", {"document": []}),
            ("WeaviateCreateTenantInvoker", {}),
            ("WeaviateDeleteChunkInvoker", {"chunk_id": "c1"}),
            ("WeaviateDeleteByFilenameInvoker", {"filename": "a"}),
            ("WeaviateDeleteByFilterInvoker", {"having_all": {"a": 1}}),
            ("WeaviateDeleteTenantInvoker", {}),
            ("WeaviateDeleteCollectionInvoker", {}),
        ):
            body = {"content": content, "parameters": scope}
            yield "POST", f"/v1/invokers/{invoker}", {"json": body}
    yield "POST", "/v1/compare", {"json": SEARCH | {"collections": [name]}}
    yield "GET", "/page/compare", {"query_string": {"q": "x", "collection": name}}
    yield "POST", "/v1/collections", {"json": {"name": name}}
    yield "POST", "/v1/collections", {"json": {"name": name, "tenants": True}}
    yield "POST", "/v1/attachments", {"json": {"name": name, "table": "doc.t"}}


@pytest.mark.long
def test_a_request_that_names_a_hidden_collection_answers_as_with_an_unknown_one(
    limited: FlaskClient,
) -> None:
    for hidden, unknown in zip(named(HIDDEN), named(UNKNOWN), strict=True):
        same(limited, hidden, unknown, HIDDEN, UNKNOWN)


@pytest.mark.long
@pytest.mark.parametrize("argument", ["document_id", "trace_id", "feedback_id", "webhook_id"])
def test_a_route_of_a_hidden_id_answers_as_that_of_an_unknown_one(
    app: Flask, ledger: Ledger, limited: FlaskClient, argument: str
) -> None:
    for scope in ((HIDDEN, ""), ("shared", "other")):
        ids = filled(ledger, *scope)[argument], ID
        for hidden, unknown in zip(*(calls(app, argument, each) for each in ids), strict=True):
            same(limited, hidden, unknown, *ids)


def test_a_task_of_a_hidden_document_answers_as_an_unknown_one(
    app: Flask, ledger: Ledger, limited: FlaskClient
) -> None:
    hidden_id = filled(ledger, HIDDEN, "")["document_id"]
    for form in ("ingest-{}-1", "delete-{}", "ingest-{}", "{}"):
        ids = [form.format(each) for each in (hidden_id, ID)]
        for hidden, unknown in zip(*(calls(app, "task_id", each) for each in ids), strict=True):
            same(limited, hidden, unknown, *ids)


def test_a_batch_of_hidden_documents_answers_as_an_unknown_one(
    app: Flask, ledger: Ledger, limited: FlaskClient
) -> None:
    ids = filled(ledger, HIDDEN, "")["batch_id"], ID
    for hidden, unknown in zip(*(calls(app, "batch_id", each) for each in ids), strict=True):
        same(limited, hidden, unknown, *ids)


@pytest.mark.long
@pytest.mark.parametrize(
    "grant", [{"tenants": frozenset({""})}, {"collections": frozenset({"papers"})}, {}]
)
def test_within_its_limits_an_unreadable_document_answers_as_an_unknown_one(
    app: Flask, ledger: Ledger, grant: dict[str, Any]
) -> None:
    one = client(app, ledger, permissions=LESSER, **grant)
    ids = filled(ledger, "papers", "", readers=("group:board",))["document_id"], ID
    for hidden, unknown in zip(*(calls(app, "document_id", each) for each in ids), strict=True):
        same(one, hidden, unknown, *ids)


@pytest.mark.long
@pytest.mark.parametrize("limit", ["tenant", "tenant, no admin", "both"])
def test_a_request_that_names_a_hidden_tenant_answers_as_with_an_unknown_one(
    app: Flask, ledger: Ledger, limit: str
) -> None:
    one, names = client(app, ledger, **LIMITS[limit]), ("other", "nosuc")
    walked = 0
    for hidden, unknown in zip(*(in_tenant(app, name) for name in names), strict=True):
        same(one, hidden, unknown, *names, refused=False)
        walked += 1
    assert walked > 100


def in_tenant(app: Flask, tenant: str) -> Iterator[Call]:
    """Requests that name a tenant of a collection with tenants."""
    yield "DELETE", f"/v1/collections/shared/tenants/{tenant}", {}
    for method, path, more in calls(app, "name", "shared"):
        for key in ("json", "query_string"):
            if more.get(key, {}).get("tenant") == "other":
                yield method, path, {key: more[key] | {"tenant": tenant}}
            elif method == "POST" and "text" in more.get("json", ()):
                yield method, path, {"json": more["json"] | {"tenant": tenant}}
    yield from named("shared", (tenant,))


def test_a_page_of_a_hidden_document_answers_as_that_of_an_unknown_one(
    ledger: Ledger, limited: FlaskClient
) -> None:
    ids = filled(ledger, HIDDEN, "")["document_id"], ID
    for page in ("/page/chunks", "/page/passage", "/page/documents/{}"):
        for more in ({}, {"after": "zzz", "start": "-1", "end": "x", "version": "0"}):
            hidden, unknown = (
                ("GET", page.format(each), {"query_string": {"document": each} | more})
                for each in ids
            )
            same(limited, hidden, unknown, *ids)


def test_feedback_of_a_hidden_search_answers_as_that_of_an_unknown_one(
    ledger: Ledger, limited: FlaskClient
) -> None:
    trace_id = filled(ledger, HIDDEN, "")["trace_id"]
    for more in ({"chunk_ids": ["c1"]}, {"citations": [9]}, {"user": "ann"}, {"verdict": "?"}, {}):
        body = {"verdict": "helpful"} | more
        hidden, unknown = (
            ("POST", "/v1/feedback", {"json": body | {"trace_id": each}}) for each in (trace_id, ID)
        )
        same(limited, hidden, unknown, trace_id, ID)


def test_an_invalid_request_about_what_a_caller_may_see_is_refused_as_such(
    app: Flask, ledger: Ledger
) -> None:
    one = client(app, ledger, tenants=frozenset({"acme"}))
    document_id = filled(ledger, "shared", "acme")["document_id"]
    assert one.get(f"/v1/documents/{document_id}/text?start=-1").status_code == 400
    assert one.patch(f"/v1/documents/{document_id}", json={"bogus": "x"}).status_code == 400
    for path in ("tenants", "receipts", "documents", "documents?tenant=acme"):
        assert one.get(f"/v1/collections/shared/{path}").status_code == 200
    assert one.options("/v1/collections/shared/tenants").status_code == 200


def test_receipts_of_a_deleted_collection_stay_for_those_whose_tenant_it_had(
    app: Flask, ledger: Ledger
) -> None:
    one = client(app, ledger, tenants=frozenset({"acme"}))
    for name, tenants in (("gone", True), ("alone", False)):
        schema = CollectionSchema(name, VectorSpec(4), tenants=tenants)
        ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="1")
    ledger.tenants.create("gone", "acme")
    ledger.tenants.delete("gone", "acme")
    ledger.receipts.begin("gone", "acme", {"documents": 1})
    for name in ("gone", "alone"):
        ledger.collections.delete(name)
    (receipt,) = one.get("/v1/collections/gone/receipts").json["receipts"]
    assert receipt["tenant"] == "acme"
    assert one.get("/v1/collections/alone/receipts").status_code == 404
    whole = client(app, ledger)
    assert whole.get("/v1/collections/alone/receipts").json == {"receipts": []}
    ledger.receipts.begin("alone", "", {"documents": 1})
    assert one.get("/v1/collections/alone/receipts").status_code == 404


def test_a_tenant_where_a_collection_has_none_is_refused_as_elsewhere(
    app: Flask, ledger: Ledger
) -> None:
    whole = client(app, ledger)
    listed = whole.get("/v1/collections/papers/documents?tenant=acme")
    other = whole.get("/v1/collections/papers/memory?tenant=acme")
    assert (listed.status_code, listed.json) == (400, other.json)


def test_dead_letters_of_an_unknown_collection_or_after_no_number_are_refused(
    app: Flask, ledger: Ledger
) -> None:
    whole = client(app, ledger)
    assert whole.get("/v1/dead-letters?collection=nope").status_code == 404
    retried = whole.post("/v1/dead-letters/retry", json={"collection": "nope"})
    assert retried.status_code == 404
    for after in ("nan", "inf", "-inf,x", "x"):
        assert whole.get(f"/v1/dead-letters?after={after}").status_code == 400
    assert whole.get("/v1/dead-letters?after=1.5,x&collection=papers").status_code == 200
