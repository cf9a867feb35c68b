"""/v1/answers/{id}: an answer afterwards, with its citations and sources.

It is in the trace of the answer and has its retention. The trace has spans of documents; their text
is read again, so that nothing of a deleted document is shown.
"""

from collections.abc import Mapping
from typing import Any

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from callslip.agent.messages import RecordedAnswer, RecordedCitation, RecordedSentence, Source
from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.messages.memory import OfTenant
from callslip.api.v1.documents import extracted_of
from callslip.errors import DocumentNotFound, TraceNotFound
from callslip.stores.ledger import DocumentRecord

blueprint = APIBlueprint("recorded_answers", __name__, abp_tags=[Tag(name="answer")])


class AnswerPath(BaseModel):
    """An answer, by its trace id."""

    trace_id: str = Field(description="the `trace_id` of the answer")


@blueprint.get("/v1/answers/<string:trace_id>", responses={200: RecordedAnswer})
def get_answer(path: AnswerPath, query: OfTenant) -> Response:
    """An answer as it was made, with its citations and the documents that it cites.

    404 if it does not exist, is not an answer of this tenant, or is older than `traces.keep_hours`.
    """
    keep_seconds = current().settings.traces.keep_hours * 3600.0
    unknown = TraceNotFound(f"answer {path.trace_id!r} does not exist, or is forgotten by now")
    if not path.trace_id.isalnum() or not path.trace_id.isascii():
        raise unknown
    trace = current().ledger.searches.trace(path.trace_id, keep_seconds=keep_seconds)
    record = (trace.body.get("answer") or {}).get("record")
    if record is None or trace.tenant != query.tenant:
        raise unknown
    documents = _documents(record, trace.collection, trace.tenant)
    citations = [
        _citation(c, documents) for c in record["citations"] if c["document_id"] in documents
    ]
    quotes = {citation.number: citation.quote for citation in citations}
    return answer(
        RecordedAnswer(
            trace_id=trace.trace_id,
            collection=trace.collection,
            at=trace.at,
            question=trace.body["question"].get("text"),
            as_of=trace.body["as_of"],
            answered=trace.body["answer"]["verdict"]["approved"],
            written_by="model" if record["by_model"] else "extracts",
            verdict=trace.body["answer"]["verdict"],
            sentences=[
                _sentence(sentence, quotes)
                for sentence in record["sentences"]
                if quotes.keys() >= set(sentence["citations"])
            ],
            citations=citations,
            sources=[_source(record, citations) for record in documents.values()],
        )
    )


def _documents(
    record: Mapping[str, Any], collection: str, tenant: str
) -> dict[str, DocumentRecord]:
    """The cited documents that exist, in the order of the citations."""
    there = {}
    for document_id in dict.fromkeys(c["document_id"] for c in record["citations"]):
        try:
            document = current().ledger.documents.get(document_id)
        except DocumentNotFound:
            continue
        if document.deleted_at is None and document.collection == collection:
            there[document_id] = document
    return there


def _citation(
    cited: Mapping[str, Any], documents: Mapping[str, DocumentRecord]
) -> RecordedCitation:
    quote = None
    if cited["url"] is not None and cited["version"]:
        try:
            text = extracted_of(documents[cited["document_id"]], cited["version"]).text
            quote = text[cited["span"]["start"] : cited["span"]["end"]]
        except DocumentNotFound:
            pass
    return RecordedCitation(**cited, quote=quote)


def _sentence(sentence: Mapping[str, Any], quotes: Mapping[int, str | None]) -> RecordedSentence:
    """The sentence; one of the documents is made of what it quotes."""
    numbers = sentence["citations"]
    quoted = " ".join(" ".join(quotes[n] or "" for n in numbers).split())
    return RecordedSentence(text=sentence["text"] or quoted or None, citations=numbers)


def _source(document: DocumentRecord, citations: list[RecordedCitation]) -> Source:
    return Source(
        document_id=document.document_id,
        filename=document.name,
        live_version=document.live_version,
        citations=[c.number for c in citations if c.document_id == document.document_id],
    )
