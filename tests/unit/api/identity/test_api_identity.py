"""Who may call what, and that a caller sees nothing outside its collections and tenants."""

import io
import logging
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from context_parts import LoneBroker, app_over, lone_app
from flask import Flask
from flask.testing import FlaskClient
from learned import say, trace
from ledger_moves import submission

from callslip.agent.messages import Answer, AnswerRequest
from callslip.api.identity import guard, lockout, routes
from callslip.api.identity.counters import Counters
from callslip.api.identity.state import identity_of
from callslip.api.v1.answers import answering
from callslip.callers import PERMISSIONS
from callslip.config.settings import ApiSettings, Settings
from callslip.messages.answers import Usage
from callslip.readers import owner_of
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.ledger import KeyGrant, KeyLimits, Ledger
from callslip.stores.ledger.answers.model_usage import day_of
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.tasks import facets, ingest, maintenance

ALL = frozenset(PERMISSIONS)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """Two collections without tenants, and one with the tenants acme and other."""
    made = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    made.create()
    for name, tenants in (("papers", False), ("hidden", False), ("shared", True)):
        schema = CollectionSchema(name, VectorSpec(4), tenants=tenants)
        made.collections.create(schema, store="memory", embedder="tiny", analyzer="1")
    for tenant in ("acme", "other"):
        made.tenants.create("shared", tenant)
    for module, name in (
        (ingest, "send_all"),
        (maintenance, "send_removal"),
        (facets, "request_rebuild"),
    ):
        monkeypatch.setattr(module, name, lambda *_: True)
    yield made
    made.close()


@pytest.fixture
def app(ledger: Ledger, tmp_path: Path) -> Iterator[Flask]:
    with lone_app(ledger, tmp_path) as made:
        yield made


def client(app: Flask, ledger: Ledger, name: str = "someone", **grant: Any) -> FlaskClient:
    """A client with a new key."""
    made = app.test_client()
    text, _ = ledger.api_keys.create(name, KeyGrant(**{"permissions": ALL} | grant))
    made.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {text}"
    return made


def store(ledger: Ledger, collection: str, tenant: str = "") -> dict[str, str]:
    """Something of everything with an id in a scope: a document, a search, feedback, a webhook."""
    batch = f"batch-{collection}-{tenant or 'all'}"
    document = replace(submission(f"{collection} {tenant}", f"{collection}-{tenant}"), batch=batch)
    item = ledger.documents.submit(collection, document, uuid.uuid4().hex, tenant=tenant)
    settings = Settings()
    search = trace("a question", ["c1"], collection=collection, tenant=tenant)
    Learning(ledger, settings.memory, settings.traces).record([search])
    outcome = say(ledger, search.trace_id, ["c1"])
    hook = ledger.webhooks.create("https://example.org", "s", ["document.live"], collection)
    return {
        "document_id": item.document_id,
        "task_id": f"ingest-{item.document_id}-1",
        "trace_id": search.trace_id,
        "feedback_id": outcome.outcome_id,
        "batch_id": batch,
        "webhook_id": hook.webhook_id,
        "delivery_id": "none",
        "name": collection,
        "thread_id": "thread",
        "tenant": tenant or "none",
        "number": "1",
    }


UNKNOWN = {
    "document_id": "0" * 32,
    "task_id": f"ingest-{'0' * 32}-1",
    "trace_id": "0" * 32,
    "feedback_id": "0" * 32,
    "batch_id": "no-batch",
    "webhook_id": "0" * 32,
    "delivery_id": "none",
    "name": "nothing",
    "thread_id": "thread",
    "tenant": "nobody",
    "number": "1",
}

BODIES: dict[str, dict[str, Any]] = {
    "collections.set_options": {},
    "collections.create_tenant": {"tenant": "new"},
    "documents.submit_document": {"name": "a.txt", "text": "words", "tenant": "?tenant"},
    "documents.list_unchanged": {"documents": [], "tenant": "?tenant"},
    "facets.count_by_property": {"by": "kind", "tenant": "?tenant"},
    "facets.rebuild_facets": {"tenant": "?tenant"},
    "ranking.decide_proposal": {"decision": "accept"},
    "memory.reset_memory": {"tenant": "?tenant"},
    "chunks.correct_chunks": {"texts": {"a chunk": "words"}},
    "previews.preview_chunks": {"text": "words", "tenant": "?tenant"},
    "versions.roll_back": {"version": 1},
    "versions.preview_cut": {"max_tokens": 64},
    "versions.cut": {"max_tokens": 64},
    "documents.change_document": {"readers": None},
    "faq.write_rows": {"rows": [{"id": 1, "question": "q", "answer": "a"}]},
    "faq.remove_rows": {"ids": [1]},
}

WITH_A_NAME_OF_THEIR_OWN = {
    *("invokers.invoke", "static"),
    *("editing.show_document", "editing.save_document", "editing.restore_version"),  # see below
}


def walk(app: Flask) -> list[tuple[str, str, str]]:
    """Every endpoint with an id in its path: its name, its method, its rule."""
    return [
        (rule.endpoint, method, rule.rule)
        for rule in app.url_map.iter_rules()
        if rule.arguments and rule.endpoint not in WITH_A_NAME_OF_THEIR_OWN
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    ]


def call(
    client: FlaskClient, endpoint: str, method: str, rule: str, ids: dict[str, str], tenant: str
) -> Any:
    path = rule
    for name, value in ids.items():
        for kind in ("string", "path"):
            path = path.replace(f"<{kind}:{name}>", value)
    body = BODIES.get(endpoint)
    if body is not None:
        body = {k: tenant if v == "?tenant" else v for k, v in body.items()}
        body = {k: v for k, v in body.items() if v != ""}
    query = {"tenant": tenant} if tenant and method == "GET" and "/collections/" in rule else None
    return client.open(path, method=method, json=body, query_string=query)


def test_every_route_declares_its_permission(app: Flask) -> None:
    endpoints = {rule.endpoint for rule in app.url_map.iter_rules()}
    assert endpoints - routes.PUBLIC == set(routes.ROUTES)
    assert endpoints >= routes.PUBLIC


@pytest.mark.long
@pytest.mark.parametrize(
    ("grant", "scope"),
    [
        ({"collections": frozenset({"papers"})}, ("hidden", "")),
        ({"collections": frozenset({"papers"})}, ("shared", "other")),
        ({"tenants": frozenset({"acme"})}, ("shared", "other")),
        ({"tenants": frozenset({"acme"})}, ("hidden", "")),
    ],
)
def test_an_id_outside_the_limits_of_a_key_does_not_exist(
    app: Flask, ledger: Ledger, grant: dict[str, Any], scope: tuple[str, str]
) -> None:
    ids = store(ledger, *scope)
    limited = client(app, ledger, **grant)
    before = (ledger.documents.states(), len(ledger.webhooks.all()), ledger.tenants.all("shared"))
    walked = 0
    for endpoint, method, rule in walk(app):
        if endpoint.startswith("faq.") and scope[0] != "hidden":
            continue
        answer = call(limited, endpoint, method, rule, ids, scope[1])
        whole = grant.get("tenants") and answer.status_code == 403
        if whole:  # it concerns all tenants of a collection, which is no secret
            assert routes.ROUTES[endpoint].limits == "endpoint"
            assert answer.json["type"].endswith("permission-missing"), endpoint
            continue
        if grant.get("tenants") and scope[0] == "shared" and endpoint in EMPTY_LISTS:
            assert answer.status_code == 200
            assert not any(each in answer.text for each in (*ids.values(),) if len(each) > 20)
            continue
        assert answer.status_code == 404, (endpoint, answer.status_code, answer.text)
        unknown = call(limited, endpoint, method, rule, UNKNOWN, "nobody" if scope[1] else "")
        assert unknown.status_code == 404, endpoint
        if answer.is_json:  # a page is checked by its status alone
            assert unknown.json["type"] == answer.json["type"] or "collections" in rule, endpoint
        walked += 1
    assert walked >= 14
    after = (ledger.documents.states(), len(ledger.webhooks.all()), ledger.tenants.all("shared"))
    assert before == after


EMPTY_LISTS = {
    "documents.list_documents",
    "collections.list_tenants",
    "collections.list_receipts",
}
"""For a key of a tenant: a collection with tenants exists; these lists have only its entries."""


def test_an_id_outside_the_limits_has_the_answer_of_an_unknown_id_to_the_letter(
    app: Flask, ledger: Ledger
) -> None:
    ids = store(ledger, "hidden")
    limited = client(app, ledger, collections=frozenset({"papers"}))
    for endpoint, method, rule in walk(app):
        if "document_id" not in rule and "task_id" not in rule and "_id" not in rule:
            continue
        hidden = call(limited, endpoint, method, rule, ids, "")
        unknown = call(limited, endpoint, method, rule, UNKNOWN, "")
        text = hidden.text
        for name, value in ids.items():
            text = text.replace(value, UNKNOWN[name])
        assert (hidden.status_code, text) == (unknown.status_code, unknown.text), endpoint


@pytest.mark.parametrize(
    "grant", [{"collections": frozenset({"papers"})}, {"tenants": frozenset({"acme", ""})}]
)
def test_lists_show_nothing_outside_the_limits(
    app: Flask, ledger: Ledger, grant: dict[str, Any]
) -> None:
    secret = [*store(ledger, "shared", "other").values(), "shared-other"]
    mine = store(ledger, "papers") if "collections" in grant else store(ledger, "shared", "acme")
    limited = client(app, ledger, **grant)
    shown = ""
    for rule in app.url_map.iter_rules():
        if rule.arguments or "GET" not in (rule.methods or ()) or rule.endpoint in routes.PUBLIC:
            continue
        answer = limited.get(rule.rule, query_string={"collection": mine["name"]})
        assert answer.status_code in (200, 302, 400, 403, 404), (rule, answer.text)
        for value in secret:
            if len(value) > 7 and value not in mine.values():
                assert value not in answer.text, (rule.endpoint, value)
        shown += answer.text
    assert mine["document_id"] in shown
    listed = limited.get("/v1/collections").json["collections"]
    expected = {"papers": 0} if "collections" in grant else {"hidden": 0, "papers": 0, "shared": 0}
    assert {each["name"]: each["documents"] for each in listed} == expected


def test_a_key_without_a_permission_is_refused_on_every_route_that_needs_it(
    app: Flask, ledger: Ledger
) -> None:
    ids = store(ledger, "papers")
    for missing in PERMISSIONS:
        others = frozenset(PERMISSIONS) - {missing, "admin"}
        lesser = client(app, ledger, f"without {missing}", permissions=others)
        for rule in app.url_map.iter_rules():
            route = routes.ROUTES.get(rule.endpoint)
            if route is None or route.permission != missing:
                continue
            path = rule.rule
            for name, value in ids.items():
                path = path.replace(f"<string:{name}>", value).replace(f"<path:{name}>", value)
            for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
                answer = lesser.open(path, method=method)
                assert answer.status_code == 403, (rule, answer.status_code)
                assert "permission" in answer.text


def test_the_id_routes_answer_a_caller_that_may_see_them(app: Flask, ledger: Ledger) -> None:
    ids = store(ledger, "shared", "acme")
    limited = client(app, ledger, collections=frozenset({"shared"}), tenants=frozenset({"acme"}))
    for path in (
        "/v1/documents/{document_id}",
        "/v1/documents/{document_id}/versions",
        "/v1/tasks/{task_id}",
        "/v1/batches/{batch_id}",
        "/v1/batches/{batch_id}/documents",
        "/debug/trace/{trace_id}",
        "/v1/collections/shared/documents?tenant=acme",
    ):
        answer = limited.get(path.format(**ids))
        assert answer.status_code == 200, (path, answer.text)


def test_an_endpoint_that_forgets_the_limits_answers_nothing(
    app: Flask, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(routes.ROUTES, "openapi", routes.Route(None, "endpoint"))
    limited = client(app, ledger, collections=frozenset({"papers"}))
    assert limited.get("/openapi.json").status_code == 500
    assert client(app, ledger, "another").get("/openapi.json").status_code == 200


def test_the_first_key_closes_the_server(app: Flask, ledger: Ledger) -> None:
    visitor = app.test_client()
    assert visitor.get("/v1/collections").status_code == 200
    identity_of(app).keys._looked_at = -1e9
    admin = client(app, ledger)
    assert admin.get("/v1/collections").status_code == 200
    assert visitor.get("/v1/collections").status_code == 401
    assert visitor.get("/healthz").status_code == 200


def test_a_server_that_others_reach_is_never_open(ledger: Ledger, tmp_path: Path) -> None:
    api = ApiSettings(host="0.0.0.0")  # noqa: S104
    app = app_over(Settings(data_dir=tmp_path, api=api), ledger=ledger, broker=LoneBroker())
    assert app.test_client().get("/v1/collections").status_code == 401
    assert client(app, ledger).get("/v1/collections").status_code == 200
    identity_of(app).close()


def test_a_key_ends_when_it_expires_or_is_revoked(app: Flask, ledger: Ledger) -> None:
    first = client(app, ledger, "first")
    text, key = ledger.api_keys.create("short", KeyGrant(ALL), time.time() + 0.2)
    headers = {"Authorization": f"Bearer {text}"}
    assert app.test_client().get("/openapi.json", headers=headers).status_code == 200
    ledger.api_keys.revoke("first")
    identity_of(app).keys._cached.clear()
    assert first.get("/openapi.json").status_code == 401
    time.sleep(max(0.0, (key.expires_at or 0) - time.time()))
    assert app.test_client().get("/openapi.json", headers=headers).status_code == 401


def test_wrong_keys_lock_their_address_and_no_right_key_of_the_ledger(
    app: Flask, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = Counters.set
    monkeypatch.setattr(Counters, "set", lambda at, name, seconds: lock(at, name, 60 * seconds))
    right = client(app, ledger)
    wrong = {"Authorization": f"Bearer {'x' * 40}"}
    codes = [app.test_client().get("/openapi.json", headers=wrong) for _ in range(lockout.FREE + 3)]
    assert [each.status_code for each in codes] == [401] * (lockout.FREE + 1) + [429] * 2
    assert codes[-1].headers["Retry-After"] == "60", "a busy machine takes more than a second here"
    assert right.get("/openapi.json").status_code == 200
    elsewhere = {"REMOTE_ADDR": "192.0.2.7"}
    answer = app.test_client().get("/openapi.json", headers=wrong, environ_base=elsewhere)
    assert answer.status_code == 401
    for address, status in (("::ffff:127.0.0.1", 429), ("::ffff:192.0.2.8", 401), ("::1", 401)):
        base = {"REMOTE_ADDR": address}  # of a server that listens on ::
        answer = app.test_client().get("/openapi.json", headers=wrong, environ_base=base)
        assert answer.status_code == status, address


def test_a_key_has_its_rate_and_its_quotas(app: Flask, ledger: Ledger) -> None:
    limits = KeyLimits(requests_per_minute=3)
    quick = client(app, ledger, "quick", limits=limits)
    codes = [quick.get("/openapi.json") for _ in range(4)]
    assert [each.status_code for each in codes[:3]] == [200] * 3
    if time.time() % 60 > 1:  # not in the first second of another minute
        assert codes[3].status_code == 429
        assert 1 <= int(codes[3].headers["Retry-After"]) <= 60
    writer = client(app, ledger, "writer", limits=KeyLimits(documents_per_day=2))
    sent = [
        writer.post(
            "/v1/collections/papers/documents", json={"name": f"{n}.txt", "text": f"text {n}"}
        ).status_code
        for n in range(3)
    ]
    assert sent == [202, 202, 429]
    small = client(app, ledger, "small", limits=KeyLimits(bytes_per_day=5))
    body = {"name": "x.txt", "text": "longer than five"}
    assert small.post("/v1/collections/papers/documents", json=body).status_code == 400
    file = {"file": (io.BytesIO(b"longer than five"), "x.txt")}
    assert small.post("/", data=file).status_code == 400


def test_each_use_of_a_key_is_in_the_audit_log_without_text(app: Flask, ledger: Ledger) -> None:
    ids = store(ledger, "papers")
    reader = client(app, ledger, "reader", permissions=frozenset({"read"}))
    reader.get(f"/v1/documents/{ids['document_id']}")
    reader.delete(f"/v1/documents/{ids['document_id']}")
    reader.post("/v1/search", json={"collection": "nowhere", "query": "a secret question"})
    identity_of(app).flush()
    rows = [row.entry for row in reversed(ledger.audit_log.rows())]
    assert [(e.caller, e.action, e.status) for e in rows] == [
        ("reader", "GET documents.get_document", 200),
        ("reader", "DELETE documents.delete_document", 403),
        ("reader", "POST searches.search", 404),
    ]
    assert rows[0].ids == {"document_id": ids["document_id"]}
    assert rows[2].ids == {"collection": "nowhere"}
    assert "secret" not in str(rows)
    verified = ledger.audit_log.verify()
    assert (verified.rows, verified.fault) == (3, None)
    key = ledger.api_keys.all()[0]
    assert key.last_used_at is not None
    assert time.time() - key.last_used_at < 60


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/search", {"query": "words"}),
        ("/v1/search", {"query": ""}),
        ("/v1/answer", {"question": "what?"}),
        ("/v1/compare", {"query": "words", "collections": ["?"]}),
        ("/v1/invokers/WeaviateSimilaritySearchInvoker", {"content": "x"}),
        (
            "/v1/invokers/WeaviateVectorSimilaritySearchInvoker",
            {"content": {"query_embedding": [1]}},
        ),
        ("/v1/invokers/WeaviatePersistInvoker", {"content": {"document": []}}),
        ("/v1/invokers/WeaviateCreateTenantInvoker", {"content": {}}),
        ("/v1/invokers/WeaviateDeleteChunkInvoker", {"content": {"chunk_id": "c1"}}),
        ("/v1/invokers/WeaviateDeleteByFilenameInvoker", {"content": {"filename": "a"}}),
        ("/v1/invokers/WeaviateDeleteByFilterInvoker", {"content": {"having_all": {"a": 1}}}),
        ("/v1/invokers/WeaviateDeleteTenantInvoker", {"content": {}}),
        ("/v1/invokers/WeaviateDeleteCollectionInvoker", {"content": {}}),
        ("/v1/collections", {"name": "?"}),
        ("/v1/attachments", {"name": "?", "table": "doc.t"}),
    ],
)
def test_a_body_that_names_what_is_hidden_is_answered_as_if_it_were_missing(
    app: Flask, ledger: Ledger, path: str, body: dict[str, Any]
) -> None:
    store(ledger, "shared", "other")
    before = (
        ledger.documents.states(),
        ledger.tenants.all("shared"),
        len(ledger.collections.all()),
    )
    by_collection = client(app, ledger, "c", collections=frozenset({"papers"}))
    by_tenant = client(app, ledger, "t", tenants=frozenset({"acme"}))
    for limited in (by_collection, by_tenant):
        sent = {
            k: "shared" if v == "?" else ["shared"] if v == ["?"] else v for k, v in body.items()
        }
        if "invokers" in path:
            sent["parameters"] = {"collection_name": "shared", "tenant_name": "other"}
        elif "search" in path or "answer" in path:
            sent |= {"collection": "shared", "tenant": "other"}
        answer = limited.post(path, json=sent)
        whole = limited is by_tenant and answer.status_code == 403
        assert answer.status_code == 404 or whole, (answer.status_code, answer.text)
    after = (ledger.documents.states(), ledger.tenants.all("shared"), len(ledger.collections.all()))
    assert before == after


def test_what_several_scopes_share_is_changed_within_the_limits_alone(
    app: Flask, ledger: Ledger
) -> None:
    hidden, mine = store(ledger, "hidden"), store(ledger, "papers")
    limited = client(app, ledger, collections=frozenset({"papers"}))
    verdict = {"verdict": "helpful", "chunk_ids": ["c1"]}
    refused = limited.post("/v1/feedback", json={"trace_id": hidden["trace_id"]} | verdict)
    assert refused.status_code == 404
    given = limited.post("/v1/feedback", json={"trace_id": mine["trace_id"]} | verdict)
    assert given.status_code in (200, 201)
    url = {"url": "https://192.0.2.1/", "events": ["document.live"]}
    assert limited.post("/v1/webhooks", json=url).status_code == 403
    assert limited.get("/v1/usage").status_code == 403
    assert limited.get("/v1/usage?collection=hidden").status_code == 404
    assert limited.get("/v1/usage?collection=papers").status_code == 200
    assert limited.post("/v1/dead-letters/retry", json={"all": True}).json["retried"] == []
    passage = limited.get("/page/passage", query_string={"document": hidden["document_id"]})
    assert passage.status_code == 404


def test_a_name_of_a_batch_is_of_the_callers_with_the_same_limits(
    app: Flask, ledger: Ledger
) -> None:
    """Nobody takes a name from others, reads or changes their batch, or learns of it."""
    acme, again, other = (
        client(app, ledger, name, tenants=frozenset({tenant}))
        for name, tenant in (("one", "acme"), ("two", "acme"), ("three", "other"))
    )
    whole = client(app, ledger)
    new = {"batch_id": "nightly", "expected": 5}
    for caller, expected in ((whole, 1), (acme, 2), (other, 3)):
        made = caller.post("/v1/batches", json=new | {"expected": expected})
        assert (made.json["batch_id"], made.json["expected"]) == ("nightly", expected)
    for caller, expected in ((whole, 1), (acme, 2), (again, 2), (other, 3)):
        assert caller.get("/v1/batches/nightly").json["expected"] == expected
    sent = {"name": "a.txt", "text": "words", "tenant": "acme", "batch": "nightly"}
    assert again.post("/v1/collections/shared/documents", json=sent).status_code == 202
    assert acme.get("/v1/batches/nightly").json["submitted"] == 1
    assert len(acme.get("/v1/batches/nightly/documents").json["documents"]) == 1
    for caller in (whole, other):
        assert caller.get("/v1/batches/nightly").json["submitted"] == 0
    [batch] = [b for b in ledger.batches.recent("shared", 0.0) if b.startswith("nightly")]
    assert whole.get(f"/v1/batches/{batch}").json["submitted"] == 1
    assert other.get(f"/v1/batches/{batch}").status_code == 404
    of_two = {"name": "b.txt", "text": "more words", "tenant": "acme", "batch": "nightly"}
    assert acme.post("/v1/collections/shared/documents", json=of_two).status_code == 202
    page = acme.get("/page/documents?collection=shared").text
    assert "nightly" in page
    assert "nightly@" not in page
    assert "nightly@" in whole.get("/page/documents?collection=shared").text


def test_a_limited_caller_reads_a_batch_of_others_only_if_it_sees_each_document(
    app: Flask, ledger: Ledger
) -> None:
    hidden, mine = store(ledger, "hidden"), store(ledger, "papers")
    limited = client(app, ledger, collections=frozenset({"papers"}))
    ledger.batches.create("announced", 5)
    assert limited.get(f"/v1/batches/{mine['batch_id']}").json["submitted"] == 1
    for name in (hidden["batch_id"], "announced", "unknown"):
        for path in (f"/v1/batches/{name}", f"/v1/batches/{name}/documents"):
            answer = limited.get(path)
            assert answer.status_code == 404
            assert answer.json["detail"] == f"batch '{name}' does not exist"


def test_a_name_of_a_batch_leaves_room_for_the_mark_of_the_limits(
    app: Flask, ledger: Ledger
) -> None:
    limited = client(app, ledger, collections=frozenset({"papers"}))
    for length, status in ((53, 200), (54, 400)):
        answer = limited.post("/v1/batches", json={"batch_id": "b" * length})
        assert answer.status_code == status
    assert "more than 53 characters" in answer.json["detail"]
    longest = {"batch_id": "b" * 64}
    assert client(app, ledger, "whole").post("/v1/batches", json=longest).status_code == 200


def test_a_batch_with_a_random_name_has_it_for_all_who_see_its_documents(
    app: Flask, ledger: Ledger
) -> None:
    acme, both, other = (
        client(app, ledger, name, tenants=frozenset(tenants))
        for name, tenants in (("one", {"acme"}), ("two", {"acme", "other"}), ("three", {"other"}))
    )
    whole = client(app, ledger)
    made = [acme.post("/v1/batches", json={"expected": 1}).json["batch_id"], "0af3" * 8]
    for batch in made:
        sent = {"name": f"{batch}.txt", "text": batch, "tenant": "acme", "batch": batch}
        assert acme.post("/v1/collections/shared/documents", json=sent).status_code == 202
        for caller in (acme, both, whole):
            assert caller.get(f"/v1/batches/{batch}").json["submitted"] == 1
        assert other.get(f"/v1/batches/{batch}").status_code == 404
        theirs = sent | {"name": "other.txt", "tenant": "other"}
        assert other.post("/v1/collections/shared/documents", json=theirs).status_code == 404
        assert other.post("/v1/batches", json={"batch_id": batch}).status_code == 404


def test_a_caller_without_limits_finds_the_only_batch_of_a_name(app: Flask, ledger: Ledger) -> None:
    acme = client(app, ledger, "one", tenants=frozenset({"acme"}))
    other = client(app, ledger, "two", tenants=frozenset({"other"}))
    whole = client(app, ledger)
    acme.post("/v1/batches", json={"batch_id": "night", "expected": 2})
    found = whole.get("/v1/batches/night").json
    assert (found["expected"], found["batch_id"][:6]) == (2, "night@")
    other.post("/v1/batches", json={"batch_id": "night", "expected": 3})
    assert whole.get("/v1/batches/night").status_code == 404
    assert whole.get(f"/v1/batches/{found['batch_id']}").json["expected"] == 2


def test_the_page_of_a_document_outside_the_limits_is_that_of_an_unknown_one(
    app: Flask, ledger: Ledger
) -> None:
    hidden = store(ledger, "hidden")["document_id"]
    mine = store(ledger, "papers")["document_id"]
    limited = client(app, ledger, collections=frozenset({"papers"}))
    assert limited.get(f"/page/documents/{mine}").status_code == 200
    for path, method in (("", "GET"), ("", "POST"), ("/restore", "POST")):
        answers = [
            limited.open(f"/page/documents/{document_id}{path}", method=method)
            for document_id in (hidden, UNKNOWN["document_id"])
        ]
        assert answers[0].status_code in (403, 404)  # a form without its token is refused
        assert answers[0].text.replace(hidden, UNKNOWN["document_id"]) == answers[1].text


def test_one_key_votes_and_asks_as_one_user_unless_it_may_delegate(
    app: Flask, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    askers: list[str] = []

    def ask(_: object, body: AnswerRequest, **_again: bool) -> Answer:
        askers.append(body.user)
        return Answer.model_construct(trace_id="t" * 32, usage=Usage())

    monkeypatch.setattr(answering.agent, "ask", ask)
    settings, longest = Settings(), "k" * 128

    def users(name: str, caller: FlaskClient, user: str) -> Any:
        search = trace("a question", ["c1"], owner=owner_of(name))
        Learning(ledger, settings.memory, settings.traces).record([search])
        verdict = {"trace_id": search.trace_id, "chunk_ids": ["c1"], "verdict": "helpful"}
        voted = caller.post("/v1/feedback", json=verdict | {"user": user})
        question = {"collection": "papers", "question": "what?", "user": user}
        answered = caller.post("/v1/answer", json=question)
        if voted.status_code == answered.status_code == 403:
            return voted.json["type"].rpartition("/")[2].rpartition(":")[2]
        assert answered.status_code == 200
        return voted.json["user"], askers[-1]

    rights = frozenset({"read", "feedback"})
    plain = client(app, ledger, "plain", permissions=rights)
    assert users("key:plain", plain, "") == ("key:plain", "key:plain")
    assert users("key:plain", plain, "bob") == "permission-missing"
    ann = client(app, ledger, "anns", permissions=rights, user="ann")
    assert users("user:ann", ann, "") == users("user:ann", ann, "ann") == ("ann", "ann")
    assert users("user:ann", ann, "bob") == "permission-missing"
    named = client(app, ledger, longest, permissions=rights)
    assert users(f"key:{longest}", named, "") == (owner_of(f"user:key:{longest}"),) * 2
    chat = client(app, ledger, "chat", permissions=rights | {"delegate"})
    assert users("key:chat", chat, "bob") == ("bob", "bob")
    assert users("key:chat", chat, "") == ("key:chat", "key:chat")


class Followed(list[Answer]):
    """What an answer's stream is made of."""

    def close(self) -> None:
        """Nothing is left to end."""


@pytest.mark.parametrize("stream", [False, True])
def test_the_tokens_of_answers_count_for_the_quota_of_their_key(
    app: Flask, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    usage = Usage(calls=1, input_tokens=90, output_tokens=10)
    made = Answer.model_construct(trace_id="t" * 32, usage=usage)
    monkeypatch.setattr(answering.agent, "ask", lambda *_, **_again: made)
    monkeypatch.setattr(answering.agent, "follow", lambda *_: Followed([made]))
    asking = client(app, ledger, "asking", limits=KeyLimits(tokens_per_day=150))
    headers = {"Accept": answering.EVENTS} if stream else {}
    codes = []
    for _ in range(3):
        body = {"collection": "papers", "question": "what?"}
        with asking.post("/v1/answer", json=body, headers=headers) as answer:
            assert answer.status_code == 429 or "t" * 32 in answer.text
            codes.append(answer.status_code)
        identity_of(app).flush()
    assert codes == [200, 200, 429]
    assert int(answer.headers["Retry-After"]) <= 86_400
    assert ledger.key_usage.of("asking", day_of(time.time())).tokens == 200
    assert [r.entry.ids.get("trace_id") for r in ledger.audit_log.rows()].count("t" * 32) == 2


def test_the_stream_of_an_answer_ends_when_its_key_is_revoked(
    app: Flask, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def follow(*_: object) -> Followed:
        ledger.api_keys.revoke("asking")
        identity_of(app).keys._cached.clear()
        return Followed([Answer.model_construct(trace_id="t" * 32, usage=Usage())])

    monkeypatch.setattr(guard, "RECHECK_SECONDS", 0.0)
    monkeypatch.setattr(answering.agent, "follow", follow)
    asking = client(app, ledger, "asking")
    body = {"collection": "papers", "question": "what?"}
    with asking.post("/v1/answer", json=body, headers={"Accept": answering.EVENTS}) as answer:
        assert answer.text.startswith("event: error")
        assert "t" * 32 not in answer.text


def test_the_log_has_of_a_path_only_what_may_be_an_id(
    app: Flask, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "callslip.api.http.access")
    for text in ("a" * 32, "what is the salary of Kim", "a" * 65, "\x1b[2J", "\u202ex"):
        app.test_client().get(f"/v1/documents/{quote(text)}").close()
    logged = [vars(record)["callslip_fields"].get("document_id") for record in caplog.records]
    assert logged == ["a" * 32, None, None, None, None]
