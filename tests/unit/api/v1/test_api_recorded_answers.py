"""Answers afterwards: GET /v1/answers/{trace_id}."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from context_parts import app_over
from flask.testing import FlaskClient
from learned import trace
from ledger_moves import publish, submit
from memory_store import MemoryStore
from store_cases import EAST, chunk

from callslip.api.v1 import feedback
from callslip.api.v1.answers import recorded_answers
from callslip.callers import Caller
from callslip.config.sections.ranking import MemorySettings, TracesSettings
from callslip.errors import DocumentNotFound, TraceNotFound
from callslip.ingestion.values import Block, ExtractedText
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.ledger import ATTACHED, Attachment, DocumentRecord, Ledger, TraceRecord
from callslip.stores.records import CollectionSchema, VectorSpec

TEXT = "Parental leave lasts 20 weeks. It is paid."
VERDICT = {"approved": True, "reason": "supported", "action": None, "confidence": 0.9}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    made.create()
    for name, tenants in (("papers", False), ("flats", True)):
        schema = CollectionSchema(name, VectorSpec(4), tenants=tenants)
        made.collections.create(schema, store="memory", embedder="tiny", analyzer="1")
    yield made
    made.close()


@pytest.fixture
def client(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> FlaskClient:
    monkeypatch.setattr(recorded_answers, "extracted_of", extracted_of)
    learning = Learning(ledger, MemorySettings(), TracesSettings())
    return app_over(ledger=ledger, learning=learning).test_client()


def extracted_of(record: DocumentRecord, version: int | None) -> ExtractedText:
    if version == 9:
        raise DocumentNotFound("the text is gone")
    return ExtractedText(text=TEXT, media_type="text/plain")


def citation(number: int, document_id: str, version: int = 1) -> dict[str, Any]:
    return {
        **{"number": number, "chunk_id": "a", "document_id": document_id, "version": version},
        **{"span": {"start": 0, "end": 30}, "passage": {"start": 0, "end": 42}},
        **{"valid_from": None, "valid_to": None, "url": "/page/passage"},
    }


def answered(
    ledger: Ledger,
    *citations: dict[str, Any],
    text: str | None = None,
    sentences: list[dict[str, Any]] | None = None,
    **more: Any,
) -> str:
    if sentences is None:
        sentences = [{"text": text, "citations": [each["number"]]} for each in citations]
    record = {"sentences": sentences, "citations": citations, "by_model": text is not None}
    made = trace("how long?", "abc", answer={"verdict": VERDICT, "record": record}, **more)
    Learning(ledger, MemorySettings(), TracesSettings()).record([made])
    return made.trace_id


def test_an_answer_is_shown_with_its_citations_and_sources(
    client: FlaskClient, ledger: Ledger
) -> None:
    document_id = publish(ledger, "one", "abc").document_id
    trace_id = answered(ledger, citation(1, document_id), text=None)
    shown = client.get(f"/v1/answers/{trace_id}").json
    assert shown["answered"]
    assert (shown["written_by"], shown["question"]) == ("extracts", None)
    assert shown["sentences"] == [{"text": TEXT[:30], "citations": [1]}]
    assert shown["citations"][0]["quote"] == TEXT[:30]
    (source,) = shown["sources"]
    assert (source["document_id"], source["citations"]) == (document_id, [1])
    by_model = answered(ledger, citation(1, document_id, version=9), text="It lasts 20 weeks.")
    shown = client.get(f"/v1/answers/{by_model}").json
    assert shown["sentences"][0]["text"] == "It lasts 20 weeks."
    assert shown["citations"][0]["quote"] is None
    assert "record" not in client.get(f"/debug/trace/{trace_id}").json["trace"]["answer"]


@pytest.mark.parametrize("start", [5, 19])
def test_a_row_of_a_table_is_shown_with_its_columns(
    client: FlaskClient, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, start: int
) -> None:
    text = "Days\nYears | Leave\n1 | 20\n2 | 25\n"
    header, row = ({"start": 5, "end": 18}, {"start": 26, "end": 32})
    table = Block(5, 33, "table", 19)
    extracted = ExtractedText(text, "text/plain", blocks=(table,))
    monkeypatch.setattr(recorded_answers, "extracted_of", lambda *_: extracted)
    document_id = publish(ledger, "one", "abc").document_id
    passage = {"start": start, "end": 33}
    cited = [
        citation(number, document_id) | {"span": span, "passage": passage}
        for number, span in enumerate((header, row) if start < 19 else (row,), 1)
    ]
    numbers = [c["number"] for c in cited]
    trace_id = answered(ledger, *cited, sentences=[{"text": None, "citations": numbers}])
    shown = client.get(f"/v1/answers/{trace_id}").json
    assert shown["sentences"] == [{"text": "Years: 2 · Leave: 25", "citations": numbers}]
    assert shown["citations"][-1]["quote"] == "2 | 25"


def test_rows_of_an_attached_table_are_cited_as_long_as_they_exist(ledger: Ledger) -> None:
    schema, store = CollectionSchema("films", VectorSpec(len(EAST))), MemoryStore()
    ledger.collections.create(
        schema,
        store=ATTACHED,
        embedder="unknown",
        analyzer="unknown",
        attachment=Attachment("doc", "films", "none"),
    )
    store.ensure_schema(schema)
    store.batch_upsert_chunks("films", [chunk("r1", document_id="r1", title="Leave", body=TEXT)])
    client = app_over(store=store, ledger=ledger).test_client()
    citations = [
        citation(number, row, version=0) | {"chunk_id": row, "url": None}
        for number, row in enumerate(("r1", "gone"), 1)
    ]
    trace_id = answered(ledger, *citations, text=None, collection="films")
    shown = client.get(f"/v1/answers/{trace_id}").json
    assert [(c["number"], c["quote"]) for c in shown["citations"]] == [(1, TEXT[:30])]
    assert shown["sentences"] == [{"text": TEXT[:30], "citations": [1]}]
    assert shown["sources"] == [
        {"document_id": "r1", "filename": "Leave", "live_version": None, "citations": [1]}
    ]


def test_what_cites_a_deleted_document_is_left_out(client: FlaskClient, ledger: Ledger) -> None:
    document_id = publish(ledger, "one", "abc").document_id
    other = submit(ledger, "two", "b.txt").document_id
    trace_id = answered(
        ledger, citation(1, document_id), citation(2, other), text="It lasts 20 weeks."
    )
    ledger.documents.delete(document_id)
    shown = client.get(f"/v1/answers/{trace_id}").json
    assert [each["number"] for each in shown["citations"]] == [2]
    assert [each["citations"] for each in shown["sentences"]] == [[2]]
    assert [each["document_id"] for each in shown["sources"]] == [other]


def test_an_answer_of_another_tenant_or_an_unknown_one_is_404(
    client: FlaskClient, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedback, "PATIENCE_SECONDS", 0.01)
    trace_id = answered(ledger, text=None, collection="flats", tenant="ann")
    assert client.get(f"/v1/answers/{trace_id}?tenant=ann").status_code == 200
    search = trace("a search", "abc")
    Learning(ledger, MemorySettings(), TracesSettings()).record([search])
    for path in (
        trace_id,
        f"{trace_id}?tenant=bob",
        f"{trace_id}?tenant=a%00b",
        search.trace_id,
        "0" * 32,
        "a%00",
        "%ED%A0%80",
        "..",
        "x" * 5000,
    ):
        assert client.get(f"/v1/answers/{path}").status_code == 404, path
    ledger.collections.delete("flats")
    assert client.get(f"/v1/answers/{trace_id}?tenant=ann").status_code == 404


@pytest.mark.parametrize(
    ("media_type", "fragment"),
    [("text/html", "#:~:text=Parental%20leave%20lasts%2020%20weeks."), ("text/plain", "")],
)
def test_the_address_of_a_web_page_leads_to_the_quote_again(
    client: FlaskClient,
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
    media_type: str,
    fragment: str,
) -> None:
    monkeypatch.setattr(
        recorded_answers, "extracted_of", lambda *_: ExtractedText(TEXT, media_type)
    )
    document_id = publish(ledger, "one", "abc").document_id
    address = {"source_url": "https://example.org/leave"}
    trace_id = answered(ledger, citation(1, document_id) | address)
    (shown,) = client.get(f"/v1/answers/{trace_id}").json["citations"]
    assert shown["source_url"] == address["source_url"] + fragment


@pytest.fixture
def late(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each trace is recorded after it was looked for once."""
    read, looked_for = ledger.searches.trace, set()

    def read_late(trace_id: str, *, keep_seconds: float) -> TraceRecord:
        if trace_id not in looked_for:
            looked_for.add(trace_id)
            raise TraceNotFound("it is on its way")
        return read(trace_id, keep_seconds=keep_seconds)

    monkeypatch.setattr(ledger.searches, "trace", read_late)


@pytest.mark.usefixtures("late")
@pytest.mark.parametrize("path", ["/v1/answers/", "/debug/trace/"])
def test_a_request_waits_for_a_trace_that_is_on_its_way(
    client: FlaskClient, ledger: Ledger, path: str
) -> None:
    trace_id = answered(ledger, citation(1, publish(ledger, "one", "abc").document_id))
    assert client.get(path + trace_id).status_code == 200


@pytest.mark.parametrize("trace_id", ["nothing", "0" * 31, "0" * 33, "g" * 32, "٣" * 32])
@pytest.mark.parametrize("path", ["/v1/answers/", "/debug/trace/"])
def test_what_is_no_trace_id_is_not_waited_for(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, path: str, trace_id: str
) -> None:
    monkeypatch.setattr(feedback, "PATIENCE_SECONDS", math.inf)
    unknown = client.get(path + trace_id)
    assert unknown.status_code == 404
    assert trace_id in unknown.json["detail"]


@pytest.mark.usefixtures("late")
@pytest.mark.parametrize("path", ["/v1/answers/", "/debug/trace/"])
def test_a_trace_of_another_tenant_that_was_on_its_way_is_unknown(
    client: FlaskClient, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(feedback, "PATIENCE_SECONDS", 0.01)
    limited = Caller("ann", "key", frozenset({"read"}), tenants=frozenset({"north"}))
    monkeypatch.setattr(feedback, "caller", lambda: limited)
    trace_id = answered(
        ledger,
        citation(1, publish(ledger, "one", "abc").document_id),
        collection="flats",
        tenant="south",
    )
    hidden = client.get(path + trace_id, query_string="tenant=south" if "v1" in path else "")
    nowhere = "0" * 32
    unknown = client.get(path + nowhere)
    assert (hidden.status_code, unknown.status_code) == (404, 404)
    assert hidden.json["detail"] == unknown.json["detail"].replace(nowhere, trace_id)
