"""Builds the store records of a version from its artifacts or from the store's own content."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import TypeVar

from callslip.errors import TenantNotFound
from callslip.ingestion.chunks.title_context import line_of_stored
from callslip.ingestion.enrich import Analyzer
from callslip.ingestion.enrich.validity import in_force_since
from callslip.ingestion.readable import Readable
from callslip.ingestion.sections.hierarchy import with_parents
from callslip.ingestion.values import Enriched, ExtractedText
from callslip.messages.options import Options
from callslip.stores.contract import Store
from callslip.stores.ledger import VersionRecord
from callslip.stores.levels import DOCUMENT, PASSAGE
from callslip.stores.records import (
    ENRICHED_PROPERTIES,
    TABLE_HEADER,
    TIMES,
    ChunkRecord,
    DocumentRecord,
    Properties,
    StoredChunk,
    Vector,
    dated,
    public,
    table_header,
)

C = TypeVar("C", ChunkRecord, StoredChunk)

_COMPARED = {f.name for f in fields(ChunkRecord)} - {
    *("vector", "named", "properties", "terms"),
    *("start", "end"),
    *TIMES,
}


def made(
    version: VersionRecord,
    extracted: ExtractedText,
    enriched: Enriched,
    vectors: Mapping[str, Vector],
    *,
    created_at: float,
    options: Options,
) -> tuple[DocumentRecord, list[ChunkRecord]]:
    """Build the document record and the chunk records of all levels from a version's artifacts.

    The terms of the title count as terms of each chunk. `vectors` are by name, as in the artifact.
    `created_at` is the document's, in seconds since 1970; `options` are the collection's.
    """
    title = version.title or extracted.title or version.filename
    of_file = {n: v for n, v in extracted.properties.items() if n not in ENRICHED_PROPERTIES}
    stated = {**enriched.facets, **of_file, **version.properties}
    properties = {**stated, **enriched.properties}
    inherited = {
        n: v for n, v in properties.items() if n != "entities" or n not in enriched.properties
    }
    document = DocumentRecord(version.document_id, title, version.filename, properties)
    source = Readable(extracted)
    vectors_of_chunk = (
        dict(zip(vectors, rows, strict=True)) for rows in zip(*vectors.values(), strict=True)
    )
    passages = [
        ChunkRecord(
            chunk_id=e.chunk.chunk_id,
            document_id=version.document_id,
            body=extracted.text[e.chunk.start : e.chunk.end],
            terms=e.terms,
            vector=by_name[""],
            named={name: vector for name, vector in by_name.items() if name},
            section=e.chunk.section,
            heading=e.chunk.heading,
            title=title,
            filename=version.filename,
            lang=version.language or e.lang,
            level=PASSAGE,
            ordinal=e.chunk.ordinal,
            start=e.chunk.start,
            end=e.chunk.end,
            properties=_with_header(
                {**inherited, **e.properties}, e.chunk.header_of(extracted.text)
            ),
            pretty=source.pretty(e.chunk),
        )
        for e, by_name in zip(enriched.chunks, vectors_of_chunk, strict=True)
    ]
    chunks = [e.chunk for e in enriched.chunks]
    whole = with_parents(document, extracted.text, chunks, passages)
    whole = [
        replace(
            c,
            terms=_with_title(c.terms, enriched.title_terms),
            anchor="" if c.level == DOCUMENT else source.anchor(c.start),
        )
        for c in whole
    ]
    whole = dated(whole, created_at, version.created_at)
    if options.valid_from_default == "created_at":
        return in_force_since(created_at, document, whole)
    return document, whole


def _with_header(properties: Properties, header: str) -> Properties:
    """Add the table's header as a property if the passage continues a table."""
    return {TABLE_HEADER: header.rstrip("\n"), **properties} if header else properties


def _with_title(terms: str, of_title: str) -> str:
    return f"{terms} {of_title}".strip()


Unlike = tuple[list[ChunkRecord], list[ChunkRecord]]
"""The chunks that a store lacks in whole or part, and those that differ there."""


def unlike(
    at: VersionRecord, store: Store, wanted: Mapping[str, Sequence[ChunkRecord]]
) -> dict[str, Unlike]:
    """Compare the chunks of documents, by document id, with those in the store.

    All documents are in the collection and the tenant of `at`. The comparison reads the store, not
    the ledger, so that the result includes the effects of a killed or late worker. The position of
    a chunk in the text is stored by the ledger (`Chunks.seen`), so a changed position alone is no
    difference. A vector follows from the text and is not compared. A chunk also differs if its copy
    beside the keyword index does, which a write that was interrupted leaves behind. A document
    record depends on more than its chunk and is written with any change. A chunk without times,
    which an earlier release wrote, differs; one of which only the audience, the parent or the
    number differs keeps its time of change.
    """
    where, tenant = at.collection, at.tenant
    stored_ids = store.chunk_ids_of(where, list(wanted), tenant=tenant)
    ids: list[str] = []
    for document_id, chunks in wanted.items():
        lack = set().union(*lacking(chunks, stored_ids[document_id]).values())
        ids += [c.chunk_id for c in chunks if c.chunk_id not in lack]
    stored = {
        c.chunk_id: c for c in store.get_chunks(where, ids, tenant=tenant, include_terms=True)
    }
    copied = store.copies(where, list(stored), tenant=tenant) if stored else ()
    copies = {copy.chunk_id: copy for copy in copied}
    return {
        document_id: _compared_with(chunks, stored_ids[document_id], stored, copies)
        for document_id, chunks in wanted.items()
    }


def _compared_with(
    chunks: Sequence[ChunkRecord],
    stored_ids: Mapping[str, set[str]],
    stored: Mapping[str, StoredChunk],
    copies: Mapping[str, StoredChunk],
) -> Unlike:
    new = [c for c in chunks if c.chunk_id not in stored]
    changed = []
    for chunk in chunks:
        there = stored.get(chunk.chunk_id)
        if there is None:
            continue
        copy = replace(copies.get(chunk.chunk_id, there), terms=there.terms)
        if _alike(chunk, there) and _alike(chunk, copy) and there.created_at:
            continue
        same = _alike(_itself(chunk), _itself(there)) and there.updated_at
        changed.append(replace(chunk, updated_at=there.updated_at) if same else chunk)
    whole = stored_ids["vector"] & stored_ids["keyword"]
    if new or changed or len(whole) > len(chunks):
        known = {c.chunk_id for c in (*new, *changed)}
        changed += [c for c in chunks if c.level == DOCUMENT and c.chunk_id not in known]
    return new, changed


def lacking(
    chunks: Sequence[ChunkRecord], stored_ids: Mapping[str, set[str]]
) -> dict[str, set[str]]:
    """Return the ids of those chunks that an index lacks, by index, without complete indexes.

    `stored_ids` is the result of `Store.chunk_ids`.
    """
    ids = {c.chunk_id for c in chunks}
    wanted = {"vector": ids, "keyword": ids}
    for chunk in chunks:
        for name in chunk.named:
            wanted.setdefault(f"vector:{name}", set()).add(chunk.chunk_id)
    lack = {half: ids - stored_ids.get(half, set()) for half, ids in wanted.items()}
    return {half: ids for half, ids in lack.items() if ids}


def _alike(chunk: ChunkRecord, stored: StoredChunk) -> bool:
    return (
        all(getattr(chunk, name) == getattr(stored, name) for name in _COMPARED)
        and stored.terms is not None
        and chunk.terms.split() == stored.terms.split()
        and _compared(chunk.properties) == _compared(stored.properties)
    )


def _itself(chunk: C) -> C:
    """The chunk without its audience and without its position among the others."""
    return replace(chunk, properties=public(chunk.properties), parent_id="", ordinal=0)


def _compared(properties: Properties) -> str:
    """Return the properties as JSON, because Python treats 1, 1.0 and True as equal."""
    return json.dumps(dict(properties), sort_keys=True)


def still_stored(
    version: VersionRecord,
    store: Store,
    chunk_ids: Iterable[str],
    analyzer: Analyzer,
    created_at: float,
) -> tuple[DocumentRecord, list[ChunkRecord]]:
    """Return the document and those of its chunks that the store can still return completely.

    The function serves versions without artifacts, such as those from an imported archive. Terms
    that the keyword index lost, or has of another text, are computed again.
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
        ids = [chunk.chunk_id for chunk in stored]
        copies = store.copies(version.collection, ids, tenant=version.tenant) if ids else ()
        bodies = {copy.chunk_id: copy.body for copy in copies}
        stored = [
            chunk
            if bodies.get(chunk.chunk_id, chunk.body) == chunk.body
            else replace(chunk, terms=None)
            for chunk in stored
        ]
        documents = store.get_documents(
            version.collection, [version.document_id], tenant=version.tenant
        )
    chunks = [_again(c, c.vector, analyzer) for c in stored if c.vector is not None]
    chunks = dated(chunks, created_at, version.created_at)
    if documents:
        return documents[0], chunks
    title, properties = version.title or version.filename, version.properties
    if chunks:
        title, properties = chunks[0].title, dict(chunks[0].properties)
    return DocumentRecord(version.document_id, title, version.filename, properties), chunks


def _again(stored: StoredChunk, vector: Vector, analyzer: Analyzer) -> ChunkRecord:
    terms = stored.terms
    if terms is None:
        title = line_of_stored(stored.title, stored.filename)
        text = table_header(stored.properties) + stored.body
        terms = _with_title(analyzer.analyze(text), analyzer.analyze(title))
    return ChunkRecord(**{**stored.__dict__, "vector": vector, "terms": terms})
