"""What a store is given of a version: made from its artifacts, or from what the store still has."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import fields, replace

from callslip.errors import TenantNotFound
from ingestion.context import line_of
from ingestion.enrich import Analyzer
from ingestion.hierarchy import with_parents
from ingestion.parts import Enriched, ExtractedText
from stores.contract import Store
from stores.ledger import VersionRecord
from stores.levels import DOCUMENT, PASSAGE
from stores.records import (
    FOUND,
    TABLE_HEADER,
    ChunkRecord,
    DocumentRecord,
    Properties,
    StoredChunk,
    Vector,
)

_COMPARED = {f.name for f in fields(ChunkRecord)} - {
    *("vector", "named", "properties", "terms"),
    *("start", "end"),
}


def made(
    version: VersionRecord,
    extracted: ExtractedText,
    enriched: Enriched,
    vectors: Vector,
) -> tuple[DocumentRecord, list[ChunkRecord]]:
    """The document, and its chunks of all levels, from the artifacts of the steps before.

    The words of the title count as words of each chunk.
    """
    title = version.title or extracted.title or version.filename
    of_file = {n: v for n, v in extracted.properties.items() if n not in FOUND}
    given = {**enriched.facets, **of_file, **version.properties}
    properties = {**given, **enriched.properties}
    inherited = {
        n: v for n, v in properties.items() if n != "entities" or n not in enriched.properties
    }
    document = DocumentRecord(version.document_id, title, version.filename, properties)
    passages = [
        ChunkRecord(
            chunk_id=e.chunk.chunk_id,
            document_id=version.document_id,
            body=extracted.text[e.chunk.start : e.chunk.end],
            terms=e.terms,
            vector=vector,
            section=e.chunk.section,
            heading=e.chunk.heading,
            title=title,
            filename=version.filename,
            lang=e.lang,
            level=PASSAGE,
            ordinal=e.chunk.ordinal,
            start=e.chunk.start,
            end=e.chunk.end,
            properties=_with_header(
                {**inherited, **e.properties}, e.chunk.header_of(extracted.text)
            ),
        )
        for e, vector in zip(enriched.chunks, vectors, strict=True)
    ]
    chunks = [e.chunk for e in enriched.chunks]
    whole = with_parents(document, extracted.text, chunks, passages)
    return document, [replace(c, terms=_with_title(c.terms, enriched.title_terms)) for c in whole]


def _with_header(properties: Properties, header: str) -> Properties:
    """Say of a passage that goes on with a table what its columns are."""
    return {TABLE_HEADER: header.rstrip("\n"), **properties} if header else properties


def _with_title(terms: str, of_title: str) -> str:
    return f"{terms} {of_title}".strip()


def unlike(
    version: VersionRecord, store: Store, chunks: Sequence[ChunkRecord]
) -> tuple[list[ChunkRecord], list[ChunkRecord]]:
    """Those of the chunks that the store does not hold whole, and those it holds otherwise.

    The store is asked, not the ledger: what a killed or late worker left is seen. Where a chunk
    stands in the text is the ledger's to say (`Chunks.seen`), so that alone is no difference; its
    vector follows from its text. A document's is of more than its chunk holds: it is written anew
    with whatever is.
    """
    where, tenant = version.collection, version.tenant
    held = store.chunk_ids(where, version.document_id, tenant=tenant)
    whole = held["vector"] & held["keyword"]
    ids = [c.chunk_id for c in chunks if c.chunk_id in whole]
    stored = {
        c.chunk_id: c for c in store.get_chunks(where, ids, tenant=tenant, include_terms=True)
    }
    new = [c for c in chunks if c.chunk_id not in stored]
    changed = [c for c in chunks if c.chunk_id in stored and not _alike(c, stored[c.chunk_id])]
    if new or changed or len(whole) > len(chunks):
        known = {c.chunk_id for c in (*new, *changed)}
        changed += [c for c in chunks if c.level == DOCUMENT and c.chunk_id not in known]
    return new, changed


def _alike(chunk: ChunkRecord, stored: StoredChunk) -> bool:
    return (
        all(getattr(chunk, name) == getattr(stored, name) for name in _COMPARED)
        and stored.terms is not None
        and chunk.terms.split() == stored.terms.split()
        and _told(chunk.properties) == _told(stored.properties)
    )


def _told(properties: Properties) -> str:
    """As JSON: Python takes 1, 1.0 and True for the same."""
    return json.dumps(dict(properties), sort_keys=True)


def kept(
    version: VersionRecord, store: Store, chunk_ids: Iterable[str], analyzer: Analyzer
) -> tuple[DocumentRecord, list[ChunkRecord]]:
    """The document and those of its chunks that the store can still give whole.

    For a version without artifacts, such as one that came with an archive. Terms that the keyword
    half lost are analyzed again.
    """
    stored: list[StoredChunk] = []
    documents: list[DocumentRecord] = []
    with suppress(TenantNotFound):
        stored = store.get_chunks(
            version.collection,
            sorted(chunk_ids),
            tenant=version.tenant,
            include_vector=True,
            include_terms=True,
        )
        documents = store.get_documents(
            version.collection, [version.document_id], tenant=version.tenant
        )
    chunks = [_again(c, c.vector, analyzer) for c in stored if c.vector is not None]
    if documents:
        return documents[0], chunks
    title, properties = version.title or version.filename, version.properties
    if chunks:
        title, properties = chunks[0].title, dict(chunks[0].properties)
    return DocumentRecord(version.document_id, title, version.filename, properties), chunks


def _again(stored: StoredChunk, vector: Vector, analyzer: Analyzer) -> ChunkRecord:
    terms = stored.terms
    if terms is None:
        title = "" if stored.title == stored.filename else line_of(stored.title)
        terms = _with_title(analyzer.analyze(stored.body), analyzer.analyze(title))
    return ChunkRecord(**{**stored.__dict__, "vector": vector, "terms": terms})
