"""/v1/answers/{id}: an answer afterwards, with its citations and sources.

It is in the trace of the answer and has its retention. The trace has spans of documents; their text
is read again, so that nothing of a deleted document or row is shown.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from callslip.agent.messages import RecordedAnswer, RecordedCitation, RecordedSentence, Source
from callslip.agent.text_fragments import with_text
from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.messages.memory import OfTenant
from callslip.api.v1.documents import extracted_of
from callslip.api.v1.feedback import read_trace
from callslip.errors import DocumentNotFound, TraceNotFound
from callslip.ingestion.extract.sniff import HTML, PLAIN
from callslip.ingestion.values import ExtractedText
from callslip.retrieval.evidence.table_rows import with_columns
from callslip.stores.ledger import DocumentRecord
from callslip.stores.records import StoredChunk

blueprint = APIBlueprint("recorded_answers", __name__, abp_tags=[Tag(name="answer")])


class AnswerPath(BaseModel):
    """An answer, by its trace id."""

    trace_id: str = Field(description="the `trace_id` of the answer")


@blueprint.get("/v1/answers/<string:trace_id>", responses={200: RecordedAnswer})
def get_answer(path: AnswerPath, query: OfTenant) -> Response:
    """An answer as it was made, with its citations and the documents that it cites.

    404 if it does not exist, is not an answer of this tenant, or is older than `traces.keep_hours`.
    """
    unknown = TraceNotFound(f"answer {path.trace_id!r} does not exist, or is forgotten by now")
    trace = read_trace(path.trace_id)
    record = (trace.body.get("answer") or {}).get("record")
    if record is None or trace.tenant != query.tenant:
        raise unknown
    documents = _documents(record, trace.collection, trace.tenant)
    cited = [c for c in record["citations"] if c["document_id"] in documents]
    texts = {
        c["number"]: documents[c["document_id"]].text(
            c["version"] if c["url"] is not None else None
        )
        for c in cited
    }
    citations = [_citation(c, texts[c["number"]]) for c in cited]
    quoted = {c["number"]: _row(c, texts[c["number"]]) for c in cited}
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
                _sentence(sentence, quoted)
                for sentence in record["sentences"]
                if quoted.keys() >= set(sentence["citations"])
            ],
            citations=citations,
            sources=[
                Source(
                    document_id=document_id,
                    filename=document.filename,
                    live_version=document.live_version,
                    citations=[c.number for c in citations if c.document_id == document_id],
                )
                for document_id, document in documents.items()
            ],
        )
    )


@dataclass(frozen=True)
class _Document:
    """A cited document that exists; `text` reads a version once, and returns None if it is gone."""

    filename: str
    live_version: int | None
    text: Callable[[int | None], ExtractedText | None]


def _documents(record: Mapping[str, Any], collection: str, tenant: str) -> dict[str, _Document]:
    """The cited documents that exist, in the order of the citations."""
    ids = list(dict.fromkeys(c["document_id"] for c in record["citations"]))
    stored_in = current().ledger.collections.get(collection)
    if stored_in.attached:
        rows = current().store_of(stored_in.store).get_chunks(collection, ids, tenant=tenant)
        return {row.chunk_id: _attached(row) for row in rows}
    there = {}
    for document_id in ids:
        try:
            document = current().ledger.documents.get(document_id)
        except DocumentNotFound:
            continue
        if document.deleted_at is None and document.collection == collection:
            there[document_id] = _Document(
                document.name, document.live_version, cache(partial(_extract, document))
            )
    return there


def _attached(row: StoredChunk) -> _Document:
    """A row of an attached table, which is a document of its own; it may have changed since."""
    return _Document(row.filename or row.title, None, lambda _: ExtractedText(row.body, PLAIN))


def _extract(document: DocumentRecord, version: int | None) -> ExtractedText | None:
    if not version:
        return None
    try:
        return extracted_of(document, version)
    except DocumentNotFound:
        return None


def _citation(cited: Mapping[str, Any], extracted: ExtractedText | None) -> RecordedCitation:
    """The citation with its quote; the address of a web page leads to the quote again."""
    quote = _quote(cited, extracted)
    citation = RecordedCitation.model_validate({**cited, "quote": quote})
    if not citation.source_url or not quote or extracted is None or extracted.media_type != HTML:
        return citation
    return citation.model_copy(update={"source_url": with_text(citation.source_url, quote)})


def _quote(cited: Mapping[str, Any], extracted: ExtractedText | None) -> str | None:
    start, end = cited["span"]["start"], cited["span"]["end"]
    return None if extracted is None else extracted.text[start:end]


def _row(cited: Mapping[str, Any], extracted: ExtractedText | None) -> str:
    """The quote; of a table row with the names of its columns."""
    if extracted is None:
        return ""
    text, start = extracted.text, cited["passage"]["start"]
    tables = (b for b in extracted.blocks if b.kind == "table" and b.header <= start < b.end)
    above = next((f"{text[table.start : table.header].strip()}\n" for table in tables), "")
    begin = start - len(above)
    passage = above + text[start : cited["passage"]["end"]]
    return with_columns(passage, cited["span"]["start"] - begin, cited["span"]["end"] - begin)


def _sentence(sentence: Mapping[str, Any], quoted: Mapping[int, str]) -> RecordedSentence:
    """The sentence; one of the documents is its last quote, before which its table's header is."""
    numbers = sentence["citations"]
    text = sentence["text"] or " ".join(quoted[numbers[-1]].split()) or None
    return RecordedSentence(text=text, citations=numbers)
