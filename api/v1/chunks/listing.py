"""The chunks of a document's live version: from the ledger, its stores and its artifacts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from callslip.api.http.context import current
from callslip.api.messages import chunks as messages
from callslip.errors import CollectionNotFound, DocumentNotFound, InvalidRequest, TenantNotFound
from callslip.ingestion.artifacts import CHUNKS, EXTRACTED, stored
from callslip.ingestion.values import Chunk, CorrectionOutcome, ExtractedText
from callslip.messages.search import Span
from callslip.retrieval.ranking.hits import pages_of
from callslip.stores.contract import Store
from callslip.stores.ledger import NO_PAGES, DocumentRecord, PageTable
from callslip.stores.ledger.base.corrections import Correction
from callslip.stores.ledger.documents.chunk_rows import After, ChunkRow
from callslip.stores.levels import PASSAGE
from callslip.stores.records import StoredChunk, public


@dataclass(frozen=True)
class _Version:
    """What is known of the live version besides its chunks."""

    record: DocumentRecord
    version: int
    pages: PageTable
    cut: Mapping[str, Chunk]
    corrections: Sequence[tuple[Correction, CorrectionOutcome]]


def correction(record: Correction) -> messages.Correction:
    """Convert a correction."""
    return messages.Correction.model_validate(record, from_attributes=True)


def listed(document_id: str, query: messages.ChunksQuery) -> messages.Chunks:
    """A page of the chunks of the live version of a document.

    Raises DocumentNotFound if no version is live, InvalidRequest for a position of no page.
    """
    record = current().ledger.documents.get(document_id)
    live = record.live_version
    if record.deleted_at is not None or live is None:
        raise DocumentNotFound(f"document {document_id!r} has no live version")
    rows = current().ledger.chunk_rows
    page = rows.page(
        document_id, after=_after(query.after), limit=query.limit, parents=query.parents
    )
    last = After.of(page[-1]) if len(page) == query.limit else None
    return messages.Chunks(
        document_id=document_id,
        version=live,
        count=rows.count(document_id, parents=query.parents),
        chunks=_messages(_version(record, live), page),
        next_after=".".join(map(str, last)) if last else None,
    )


def _after(value: str | None) -> After | None:
    if value is None:
        return None
    start, end, chunk_id = value.split(".", 2)
    if max(int(start), int(end)) >= 2**31:
        raise InvalidRequest("after is no next_after of a page of chunks")
    return After(int(start), int(end), chunk_id)


def _version(record: DocumentRecord, live: int) -> _Version:
    ledger, document_id = current().ledger, record.document_id
    made = ledger.documents.version(document_id, live).corrections
    extract = _extract(document_id, live) if made else None
    outcomes = extract.corrections if extract else ()
    corrections = zip(made, outcomes, strict=True) if len(made) == len(outcomes) else ()
    return _Version(
        record=record,
        version=live,
        pages=ledger.pages.of({document_id: live}).get(document_id, NO_PAGES),
        cut=_cut(document_id, live),
        corrections=[pair for pair in corrections if pair[1].left_out is None],
    )


def _cut(document_id: str, live: int) -> dict[str, Chunk]:
    """The chunks of the artifact by id; none if it is not stored."""
    chunks = stored(current().backend, document_id, live, "chunk", CHUNKS) or []
    return {each.chunk_id: each for each in chunks}


def _extract(document_id: str, live: int) -> ExtractedText | None:
    return stored(current().backend, document_id, live, "extract", EXTRACTED)


def _messages(version: _Version, page: Sequence[ChunkRow]) -> list[messages.Chunk]:
    record = version.record
    ids = [row.chunk_id for row in page]
    sides = _sides(record.collection)
    stored: dict[str, StoredChunk] = {}
    indexes_by_side: dict[str, dict[str, set[str]]] = {}
    for side, store in sides.items():
        indexes_by_side[side] = {}
        try:
            indexes_by_side[side] = store.chunk_ids(
                record.collection, record.document_id, tenant=record.tenant
            )
            chunks = store.get_chunks(
                record.collection, ids, tenant=record.tenant, include_terms=True
            )
        except (CollectionNotFound, TenantNotFound):  # a move has not made them yet
            continue
        stored = {chunk.chunk_id: chunk for chunk in chunks} | stored
    extract = None
    if len(stored) < len(ids):  # a store has lost chunks, whose text is in the extract
        extract = _extract(record.document_id, version.version)
    text = extract.text if extract else ""
    return [
        _message(version, row, stored.get(row.chunk_id) or text, indexes_by_side) for row in page
    ]


def _sides(collection: str) -> dict[str, Store]:
    """The stores that have the collection: its own, and the other one of a move."""
    home = current().ledger.collections.get(collection).store
    move = current().ledger.moves.underway(collection)
    sides = dict.fromkeys([home, *([move[0]] if move else [])])
    return {side: current().store_of(side) for side in sides}


def _message(
    version: _Version,
    row: ChunkRow,
    known: StoredChunk | str,
    indexes_by_side: Mapping[str, Mapping[str, set[str]]],
) -> messages.Chunk:
    """One chunk as a store has it, or of the text of the document; then the rest is empty."""
    span, cut = row.span, version.cut.get(row.chunk_id)
    stored = None if isinstance(known, str) else known
    properties: dict[str, Any] = dict(public(stored.properties)) if stored else {}
    facets = current().settings.facets.facets
    text = known.body if not isinstance(known, str) else known[slice(*span)] if span else ""
    entities = properties.get("entities")
    return messages.Chunk(
        chunk_id=row.chunk_id,
        level=stored.level if stored else PASSAGE,
        parent_id=(stored.parent_id or None) if stored else None,
        ordinal=cut.ordinal if cut else stored.ordinal if stored else 0,
        section=cut.section if cut else stored.section if stored else "",
        heading=cut.heading if cut else stored.heading if stored else "",
        text=text,
        span=Span(start=span[0], end=span[1]) if span else None,
        pages=pages_of(version.pages, *span) if span else None,
        tokens=cut.tokens if cut else None,
        lang=stored.lang if stored else "",
        terms=(stored.terms or "").split() if stored else [],
        entities=entities if isinstance(entities, list) else [],
        facets={name: value for name, value in properties.items() if name in facets},
        properties=properties,
        stores={
            side: [index for index, ids in sorted(indexes.items()) if row.chunk_id in ids]
            for side, indexes in indexes_by_side.items()
        },
        corrections=[
            correction(made)
            for made, at in version.corrections
            if span and at.start < span[1] and span[0] < at.end
        ],
    )
