"""Corrects the text of chunks: a new version of the document with the same file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from callslip.errors import ChunkNotFound, Conflict, DocumentNotFound, InvalidCorrection
from callslip.ingestion.artifacts import CHUNKS, EXTRACTED, stored
from callslip.ingestion.chunks.chunk import Tokenizer
from callslip.ingestion.corrections.applying import moved
from callslip.ingestion.corrections.text_edits import TextEdit, corrections_of, edits_between
from callslip.ingestion.enrich.scrub import masked
from callslip.ingestion.extract.clean import clean
from callslip.models.embedders.choice import embedder_of
from callslip.models.embedders.contract import Embedder
from callslip.stores.backend import Backend
from callslip.stores.ledger import Accepted, DocumentRecord
from callslip.stores.ledger.base.corrections import LONGEST_TEXT
from callslip.stores.ledger.documents.chunks import Span
from callslip.stores.ledger.documents.corrections import check_number
from callslip.stores.ledger.documents.versions import check_newest


@dataclass(frozen=True)
class Measures:
    """What measures chunks: the tokenizer, and the embedder with the one before it."""

    tokenizer: Tokenizer
    embedder: Embedder
    previous: Embedder | None = None


def correct(
    backend: Backend,
    measures: Measures,
    document_id: str,
    texts: Mapping[str, str],
    based_on: int | None = None,
) -> Accepted:
    """Queue a version of a document in which passages have other texts; the result names it.

    `texts` has the whole corrected text of each passage by its id. A passage that shares the
    changed text, because passages overlap, changes too; all others keep their ids. If no text
    differs, nothing changes and the result is not `fresh`. `based_on` is the version that the
    caller read.

    Raises DocumentNotFound, ChunkNotFound, Conflict if `based_on` is not the newest version, if the
    newest one is not live, or if the document has no text of a file; InvalidCorrection if a passage
    becomes empty or longer than the embedder reads, or if two corrections contradict each other.
    """
    record = backend.ledger.documents.get(document_id)
    if record.deleted_at is not None:
        raise DocumentNotFound(f"document {document_id!r} was deleted")
    newest = record.newest
    check_newest(based_on or newest.version, newest.version, record.live_version)
    extract = None
    if newest.size:
        extract = stored(backend, document_id, newest.version, "extract", EXTRACTED)
    if extract is None:
        raise Conflict(
            f"document {document_id!r} has no text that can be corrected",
            hint="Its chunks were provided by their sender, who can replace them; or its text is"
            " gone, which `callslip audit --repair` extracts again.",
        )
    spans = {row.chunk_id: row.span for row in backend.ledger.chunk_rows.passages(document_id)}
    scrubbed = backend.ledger.collections.get(record.collection).options.scrub == "text"
    edits: set[TextEdit] = set()
    for chunk_id, text in texts.items():
        start, end = _span(spans, chunk_id, document_id)
        new = _cleaned(chunk_id, text)
        new = masked(new) if scrubbed else new
        edits |= set(edits_between(extract.text[start:end], new, start))
    ordered = sorted(edits)
    _check_disjoint(ordered)
    if not ordered:
        return Accepted(document_id, newest.version, fresh=False)
    check_number(len(newest.corrections) + len(ordered))
    corrections, after = corrections_of(extract.text, ordered)
    _check_lengths(backend, measures, record, spans, ordered, after)
    return backend.ledger.corrections.add(document_id, newest.version, corrections)


def _span(spans: Mapping[str, Span | None], chunk_id: str, document_id: str) -> Span:
    span = spans.get(chunk_id)
    if span is None:
        raise ChunkNotFound(f"document {document_id!r} has no passage {chunk_id!r}")
    return span


def _cleaned(chunk_id: str, text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise InvalidCorrection(
            f"the text of chunk {chunk_id} has {len(text):,} characters, more than {LONGEST_TEXT:,}"
        )
    cleaned = clean(text).strip()
    if not any(sign.isprintable() and not sign.isspace() for sign in cleaned):
        raise InvalidCorrection(f"the correction makes chunk {chunk_id} empty")
    return cleaned


def _check_disjoint(edits: Sequence[TextEdit]) -> None:
    for before, edit in pairwise(edits):
        if edit.start < before.end:
            raise InvalidCorrection(
                "two corrections change the same words in different ways",
                hint="Passages overlap: correct the words in one of them.",
            )


def _check_lengths(
    backend: Backend,
    measures: Measures,
    record: DocumentRecord,
    spans: Mapping[str, Span | None],
    edits: Sequence[TextEdit],
    after: str,
) -> None:
    """Raise InvalidCorrection if a passage with an edit is empty or too long after the edits."""
    collection = backend.ledger.collections.get(record.collection)
    embedder = embedder_of(collection.embedder, measures.embedder, measures.previous)
    headers = _headers(backend, record)
    last_first = list(reversed(edits))  # each in the coordinates of the text that later ones leave
    for chunk_id, span in spans.items():
        if span is None or not any(e.start < span[1] and span[0] < e.end for e in edits):
            continue
        start, end = (moved(at, last_first) for at in span)
        rows = slice(*(moved(at, last_first) for at in headers.get(chunk_id, (0, 0))))
        text = after[start:end].strip()
        if not text:
            raise InvalidCorrection(f"the correction makes chunk {chunk_id} empty")
        tokens = len(measures.tokenizer.offsets(f"{after[rows]}{text}"))
        if tokens > embedder.max_tokens:
            raise InvalidCorrection(
                f"the correction makes chunk {chunk_id} {tokens} tokens long, and the embedder"
                f" reads {embedder.max_tokens}",
                hint="Shorten it, or correct the file itself and send it under its name.",
            )


def _headers(backend: Backend, record: DocumentRecord) -> dict[str, Span]:
    """Return the headers of tables that passages continue, as far as they are known."""
    chunks = stored(backend, record.document_id, record.newest.version, "chunk", CHUNKS) or []
    return {chunk.chunk_id: chunk.header for chunk in chunks if chunk.header != (0, 0)}
