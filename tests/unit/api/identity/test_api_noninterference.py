"""A caller is answered as if what it may not read did not exist: every route, two installations.

One installation has documents, searches, feedback and batches that the caller may not read; the
other one does not have them. Each request is sent to both; the two responses must be equal, except
for ids and times.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from reader_parts import COLLECTION, Installation, installation

from callslip.api.http.context import context_of
from callslip.api.identity.routes import PUBLIC, ROUTES
from callslip.retrieval.facets.vectors import FacetBuilder
from callslip.retrieval.messages import SearchRequest
from callslip.retrieval.run import traced
from callslip.stores.ledger import Submission
from callslip.stores.ledger.documents.documents import Documents

READER = "user:bob,group:sales"

UNKNOWN = "f" * 32
"""In place of ids that one of the two installations lacks."""

BODY = {"collection": COLLECTION, "query": "the merger of the canteen in May"}


class Ids(NamedTuple):
    """Ids that the caller may not read; unknown ones in the installation without them."""

    document: str
    child: str
    chunk: str
    trace: str
    feedback: str
    public: str


Calls = Callable[[Ids], list[tuple[str, str, dict[str, Any]]]]
"""Makes requests: method, URL and arguments."""

A = f"/v1/collections/{COLLECTION}"


def _search(**more: Any) -> tuple[str, str, dict[str, Any]]:
    return "POST", "/v1/search", {"json": BODY | {"top": 20, "explain": True} | more}


def _faq(name: str, **content: Any) -> tuple[str, str, dict[str, Any]]:
    return "POST", f"/v1/invokers/{name}", {"json": {"content": content}}


CALLS: dict[str, Calls] = {
    "openapi": lambda i: [("GET", "/openapi.json", {})],
    "collections.create_collection": lambda i: [
        ("POST", "/v1/collections", {"json": {"name": COLLECTION}})
    ],
    "collections.list_collections": lambda i: [("GET", "/v1/collections", {})],
    "collections.list_receipts": lambda i: [
        ("GET", f"{A}/receipts", {}),
        ("GET", "/v1/collections/gone/receipts", {}),
    ],
    "collections.create_tenant": lambda i: [("POST", f"{A}/tenants", {"json": {"tenant": "t"}})],
    "collections.list_tenants": lambda i: [("GET", f"{A}/tenants", {})],
    "documents.list_documents": lambda i: [
        ("GET", f"{A}/documents", {}),
        ("GET", f"{A}/documents?limit=1", {}),
        ("GET", f"{A}/documents?parent={i.document}", {}),
    ],
    "documents.get_document": lambda i: [
        ("GET", f"/v1/documents/{i.document}", {}),
        ("GET", f"/v1/documents/{i.child}", {}),
        ("GET", f"/v1/documents/{i.public}", {}),
    ],
    "documents.get_text": lambda i: [
        ("GET", f"/v1/documents/{i.document}/text", {}),
        ("GET", f"/v1/documents/{i.document}/text?version=1", {}),
    ],
    "files.get_file": lambda i: [
        ("GET", f"/v1/documents/{i.document}/file", {}),
        ("GET", f"/v1/documents/{i.document}/file?version=1", {}),
    ],
    "files.get_page": lambda i: [("GET", f"/v1/documents/{i.document}/pages/1.png", {})],
    "files.get_table": lambda i: [("GET", f"/v1/documents/{i.document}/tables/1.csv", {})],
    "documents.change_document": lambda i: [
        ("PATCH", f"/v1/documents/{i.document}", {"json": body, "headers": headers})
        for body in ({"readers": None}, {"title": "T"})
        for headers in ({}, {"If-Match": '"1"'}, {"If-Match": '"9"'})
    ],
    "editing.show_document": lambda i: [("GET", f"/page/documents/{i.document}", {})],
    "editing.save_document": lambda i: [
        ("POST", f"/page/documents/{i.document}", {"data": {"title": "T", "was": "{}"}})
    ],
    "editing.restore_version": lambda i: [
        ("POST", f"/page/documents/{i.document}/restore", {"data": {"version": "1"}})
    ],
    "documents.delete_document": lambda i: [("DELETE", f"/v1/documents/{i.document}", {})],
    "documents.submit_document": lambda i: [
        ("POST", f"{A}/documents", {"json": {"name": "twin.txt", "text": SECRET}})
    ],
    "documents.list_unchanged": lambda i: [
        ("POST", f"{A}/documents/unchanged", {"json": {"documents": [named]}})
        for named in (
            {
                "name": "board.txt",
                "filename": "board.txt",
                "sha256": hashlib.sha256(SECRET.encode()).hexdigest(),
            },
            {"name": "nothing.txt", "filename": "nothing.txt", "sha256": "0" * 64},
        )
    ],
    "versions.list_versions": lambda i: [("GET", f"/v1/documents/{i.document}/versions", {})],
    "versions.roll_back": lambda i: [
        ("POST", f"/v1/documents/{i.document}/rollback", {"json": {"version": 1}})
    ],
    "chunks.list_chunks": lambda i: [
        ("GET", f"/v1/documents/{i.document}/chunks", {}),
        ("GET", f"/v1/documents/{i.document}/chunks?parents=true", {}),
        ("GET", f"/v1/documents/{i.public}/chunks?parents=true", {}),
    ],
    "chunks.list_corrections": lambda i: [("GET", f"/v1/documents/{i.document}/corrections", {})],
    "chunks.correct_chunks": lambda i: [
        ("POST", f"/v1/documents/{document}/corrections", {"json": {"texts": {i.chunk: "new"}}})
        for document in (i.document, i.public)
    ],
    "previews.preview_chunks": lambda i: [
        ("POST", f"{A}/chunks:preview", {"json": {"text": SECRET}})
    ],
    "versions.preview_cut": lambda i: [
        ("POST", f"/v1/documents/{i.document}/cut:preview", {"json": {"max_tokens": 64}})
    ],
    "versions.cut": lambda i: [
        ("POST", f"/v1/documents/{i.document}/cut", {"json": {"max_tokens": 64}})
    ],
    "events.get_events": lambda i: [
        ("GET", f"/v1/documents/{i.document}/events", {}),
        ("GET", f"/v1/documents/{i.document}/events", {"headers": {"Last-Event-ID": "1"}}),
    ],
    "tasks.get_task": lambda i: [
        ("GET", f"/v1/tasks/ingest-{i.document}-1", {}),
        ("GET", f"/v1/tasks/delete-{i.document}", {}),
    ],
    "batches.create_batch": lambda i: [("POST", "/v1/batches", {"json": {"batch_id": "new"}})],
    "batches.get_batch": lambda i: [("GET", f"/v1/batches/{b}", {}) for b in ("hidden", "mixed")],
    "batches.list_batch_documents": lambda i: [
        ("GET", f"/v1/batches/{batch}/documents", {}) for batch in ("hidden", "mixed")
    ],
    "failures.list_dead_letters": lambda i: [("GET", "/v1/dead-letters", {})],
    "failures.retry": lambda i: [
        ("POST", "/v1/dead-letters/retry", {"json": {"all": True}}),
        ("POST", "/v1/dead-letters/retry", {"json": {"document_ids": [i.document]}}),
    ],
    "searches.search": lambda i: [
        _search(alpha=1.0),
        _search(alpha=1.0, fusion="rrf", include_vector=True),
        _search(alpha=1.0, operation_level="every", parent_strategy="include"),
        _search(alpha=1.0, operation_level=-1),
        _search(alpha=1.0, having_all={"document_id": i.document}),
        _search(alpha=1.0, having_all={"clearance": "top"}),
        _search(alpha=1.0, having_any={"clearance !=": "top"}),
        _search(alpha=1.0, ranking={"mmr_lambda": 0.5}),
        _search(fusion="rrf"),
        _search(fusion="weighted"),
        _search(query="zebra crossing"),
        _search(),
    ],
    "answers.answer_question": lambda i: [
        ("POST", "/v1/answer", {"json": {"collection": COLLECTION, "question": question} | more})
        for question in ("When is the merger?", "When does the canteen open?")
        for more in ({}, {"thread_id": "talk"})
    ],
    "answers.get_conversation": lambda i: [
        ("GET", f"{A}/conversations/{thread}", {}) for thread in ("talk", "board")
    ],
    "answers.delete_conversation": lambda i: [("DELETE", f"{A}/conversations/board", {})],
    "recorded_answers.get_answer": lambda i: [("GET", f"/v1/answers/{i.trace}", {})],
    "feedback.get_trace": lambda i: [("GET", f"/debug/trace/{i.trace}", {})],
    "feedback.give_feedback": lambda i: [
        ("POST", "/v1/feedback", {"json": body | {"trace_id": i.trace, "verdict": "helpful"}})
        for body in ({"chunk_ids": [i.chunk]}, {"citations": [1]})
    ],
    "feedback.withdraw_feedback": lambda i: [("DELETE", f"/v1/feedback/{i.feedback}", {})],
    "facets.list_facets": lambda i: [("GET", f"{A}/facets?limit=100", {})],
    "facets.propose_facets": lambda i: [("GET", f"{A}/facets/proposals", {})],
    "facets.count_by_property": lambda i: [
        ("POST", f"{A}/counts", {"json": {"by": by} | more})
        for by in ("kind", "clearance", "document_id", "lang", "callslip:audience")
        for more in ({}, {"having_all": {"clearance !=": "top"}}, {"limit": 1})
    ],
    "memory.show_memory": lambda i: [("GET", f"{A}/memory", {})],
    "memory.export_memory": lambda i: [("GET", f"{A}/memory/export", {})],
    "ranking.show_ranking": lambda i: [("GET", f"{A}/ranking", {})],
    "ranking.list_examples": lambda i: [("GET", f"{A}/ranking/examples", {})],
    "usage.show_usage": lambda i: [("GET", "/v1/usage", {})],
    "pages.page": lambda i: [
        ("GET", "/", {}),
        ("GET", f"/?collection={COLLECTION}&q=merger+canteen&fusion=rrf", {}),
        ("GET", f"/?collection={COLLECTION}&q=merger&ask=1&fusion=rrf", {}),
    ],
    "pages.document_list": lambda i: [("GET", f"/page/documents?collection={COLLECTION}", {})],
    "pages.answer_live": lambda i: [
        ("POST", "/page/answer", {"data": {"collection": COLLECTION, "q": "merger", "ask": "1"}})
    ],
    "pages.passage": lambda i: [
        ("GET", f"/page/passage?document={i.document}&start=0&end=5", {}),
        ("GET", f"/page/passage?document={i.document}&start=0&end=5&version=1", {}),
    ],
    "chunk_pages.chunk_list": lambda i: [
        ("GET", f"/page/chunks?document={document}", {}) for document in (i.document, i.public)
    ],
    "chunk_pages.correct_chunk": lambda i: [
        (
            "POST",
            "/page/corrections",
            {"data": {"document": document, "chunk": i.chunk, "text": "new", "version": "1"}},
        )
        for document in (i.document, i.public)
    ],
    "comparing.page": lambda i: [
        ("GET", f"/page/compare?q=merger&collection={COLLECTION}&collection=help__question", {})
    ],
    "faq.list_rows": lambda i: [("GET", "/v1/faq/help", {})],
    "faq.remove_rows": lambda i: [("POST", "/v1/faq/help/remove", {"json": {"ids": [1]}})],
    "faq.write_rows": lambda i: [
        (
            "POST",
            "/v1/faq/mine",
            {"json": {"rows": [{"id": 1, "question": "Who?", "answer": "I."}]}},
        )
    ],
    "faq.compare_collections": lambda i: [
        (
            "POST",
            "/v1/compare",
            {"json": {"query": "merger", "collections": [COLLECTION, "help__question"]}},
        )
    ],
    "invokers.invoke": lambda i: [
        _faq(
            "WeaviateVectorSimilaritySearchInvoker",
            query_embedding=[1.0] * 16,
            collection=COLLECTION,
            top=20,
        ),
        _faq("WeaviateDeleteChunkInvoker", collection=COLLECTION, chunk_id=i.chunk),
        _faq("WeaviateDeleteByFilenameInvoker", collection=COLLECTION, filename="board.txt"),
        _faq(
            "WeaviateDeleteByFilterInvoker", collection=COLLECTION, having_all={"clearance": "top"}
        ),
    ],
}
"""Requests for each endpoint that a caller without the permission `admin` may call."""

LEFT_OUT = {
    "metrics.metrics": "numbers of the whole installation; documents are counted for the caller",
    "login.logout": "ends a session",
    **dict.fromkeys(
        (
            "annotator.upload_file",
            "annotator.download_file",
            "annotator.vectorize_documents",
            "annotator.return_candidates",
            "annotator.process_and_upload_doc",
        ),
        "files of its own folder, which are no documents",
    ),
}

SECRET = "The merger of the canteen with the zebra crossing is in May. Nobody knows it."


@pytest.fixture(scope="module")
def twins(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[tuple[Installation, Ids], tuple[Installation, Ids]]]:
    """An installation with hidden documents, and one without; with the ids of each."""
    folder = tmp_path_factory.mktemp("twins")
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        ids_by_name(monkeypatch),
        installation(folder / "with", monkeypatch) as one,
        installation(folder / "without", monkeypatch) as two,
    ):
        yield (one, filled(one, hidden=True)), (two, filled(two, hidden=False))


@contextmanager
def ids_by_name(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Documents of one name have one id, and their chunks too, in both installations."""
    submit = Documents.submit

    def submit_as(self: Documents, collection: str, new: Submission, _: str, **more: Any) -> Any:
        name = f"{collection}/{new.name}".encode()
        return submit(self, collection, new, hashlib.md5(name).hexdigest(), **more)  # noqa: S324

    monkeypatch.setattr(Documents, "submit", submit_as)
    yield


def filled(it: Installation, *, hidden: bool) -> Ids:
    """Fill an installation; return the ids of what the caller may not read."""
    anyone, row = it.anyone, "/v1/faq/help"
    rows = {"rows": [{"id": 1, "question": "When is the merger?", "answer": "In May."}]}
    assert anyone.call("POST", row, json=rows).status_code == 200
    public = it.put("public.txt", PUBLIC_TEXT, batch="mixed", properties='{"kind": "open"}')
    it.put("menu.txt", "The canteen menu has soup.", properties='{"kind": "menu"}')
    it.put("sales.txt", "Sales of the canteen rose.", readers="group:sales")
    ids = Ids(*[UNKNOWN] * 5, public=public)
    if hidden:
        fields = {"readers": "group:board", "properties": '{"kind": "secret", "clearance": "top"}'}
        document = it.put("board.txt", SECRET, batch="mixed", **fields)
        it.put("board2.txt", f"{SECRET} Really.", batch="hidden", **fields)
        it.put("broken.pdf", "no pdf at all", **fields)
        it.put("empty.zip", "x", readers="group:board")
        gone = it.put("gone.txt", "Gone merger.", readers="group:board")
        anyone.call("DELETE", f"/v1/documents/{gone}")
        request = SearchRequest.model_validate(BODY)
        response, trace = traced(it.context.resources, request)
        it.context.learning.record([trace])
        (chunk, *_) = [h.chunk_id for h in response.hits if h.document_id == document]
        body = {"trace_id": trace.trace_id, "chunk_ids": [chunk], "verdict": "helpful"}
        given = anyone.call("POST", "/v1/feedback", json=body)
        asked = {"collection": COLLECTION, "question": "When is the merger?", "thread_id": "board"}
        assert anyone.call("POST", "/v1/answer", json=asked).json["answered"]
        child = it.put("child.txt", f"{SECRET} Child.", **fields)
        outcome = given.json["feedback_id"]
        ids = Ids(document, child, chunk, trace.trace_id, outcome, public)
    for collection, _ in it.ledger.collections.all():
        if collection.name.startswith("help__"):
            url = f"/v1/documents/{it.ledger.documents.id_of(collection.name, 'faq')}"
            if hidden:
                assert anyone.call("PATCH", url, json={"readers": []}).status_code == 200
            else:
                assert anyone.call("DELETE", url).status_code == 202
    record = it.ledger.collections.get(COLLECTION)
    builder = FacetBuilder(it.ledger, it.context.store_of(""), it.context.embedder, 100)
    builder.rebuild(record, "", ["kind"])
    return ids


PUBLIC_TEXT = "The canteen opens at nine. The library of the town has many books."

TIMES = re.compile(r"seconds|_at$|^at$|timings|milliseconds|per_minute|^stamp$|^run$|^next_")
SCORED = re.compile(r"score|legs|^parts$|^basis$|^matched$|^alpha$|confidence|milliseconds")


def normal(value: Any, key: str = "", *, exact: bool = True) -> Any:
    """A response without ids and times; without `exact` also without scores."""
    if TIMES.search(key) or (not exact and SCORED.search(key)):
        return None
    if isinstance(value, dict):
        return {k: normal(v, k, exact=exact) for k, v in value.items()}
    if isinstance(value, list):
        return [normal(v, key, exact=exact) for v in value]
    if isinstance(value, str):
        return plain(value)
    return value


def plain(text: str) -> str:
    """A text without ids and times."""
    text = re.sub(r"[0-9a-f]{32,64}", "ID", text)
    text = re.sub(
        r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:[\d.]+)?|(&lt;)?\d+(\.\d+)? m?s\b|before=[\d.]+",
        "TIME",
        text,
    )
    return re.sub(r"(score|title)=\"?[\d. ]+|\b0?\.\d+\b|\d+\.\d{2,}", "NUMBER", text)


def sent(it: Installation, call: tuple[str, str, dict[str, Any]], *, exact: bool) -> Any:
    """The normal form of the response to a request of the caller."""
    method, url, arguments = call
    response = it.as_reader(READER).call(method, url, **arguments)
    headers = {k: v for k, v in response.headers.items() if k not in ("Content-Length", "Date")}
    body: Any = plain(response.text)
    if response.mimetype == "application/json" or response.mimetype.endswith("problem+json"):
        body = normal(json.loads(response.text), exact=exact)
    return response.status_code, {k: plain(v) for k, v in headers.items()}, body


def differences(left: Any, right: Any, path: str = "") -> Iterator[str]:
    """Where two responses differ, and how."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in left.keys() | right.keys():
            yield from differences(left.get(key), right.get(key), f"{path}.{key}")
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        for n in range(max(len(left), len(right))):
            parts = (side[n] if n < len(side) else None for side in (left, right))
            yield from differences(*parts, f"{path}[{n}]")
    elif isinstance(left, str) and isinstance(right, str) and "\n" in left + right:
        yield from differences(left.split("\n"), right.split("\n"), path)
    elif left != right:
        yield f"{path}: {left!r} / {right!r}"


@pytest.mark.long
def test_every_endpoint_has_requests(twins: Any) -> None:
    (one, _), _ = twins
    endpoints = {rule.endpoint for rule in one.client.application.url_map.iter_rules()}
    admin = {name for name, route in ROUTES.items() if route.permission == "admin"}
    assert endpoints - PUBLIC - admin - LEFT_OUT.keys() == CALLS.keys() & endpoints
    assert context_of(one.client.application) is one.context


@pytest.mark.long
@pytest.mark.parametrize("endpoint", CALLS)
def test_a_caller_is_answered_as_if_hidden_documents_did_not_exist(
    twins: Any, endpoint: str
) -> None:
    (one, ids), (two, unknown) = twins
    for of_one, of_two in zip(CALLS[endpoint](ids), CALLS[endpoint](unknown), strict=True):
        exact = of_one[2].get("json", {}).get("alpha") == 1.0
        answers = sent(one, of_one, exact=exact), sent(two, of_two, exact=exact)
        assert not list(differences(*answers)), of_one


def test_the_hidden_documents_are_there_for_those_who_may_read_them(twins: Any) -> None:
    (one, ids), _ = twins
    for names in ("group:board", None):
        at = one.anyone if names is None else one.as_reader(names)
        assert at.call("GET", f"/v1/documents/{ids.document}").status_code == 200
        assert "board.txt" in at.search("zebra crossing")
