"""The steps of a document, each from the artifacts of the ones before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from callslip.errors import CollectionNotFound, ObjectRefused, SettingsError, StoreDown
from config.settings import ExtractSettings
from ingestion import records
from ingestion.artifacts import (
    CHUNKS,
    ENRICHED,
    EXTRACTED,
    SECTIONS,
    VECTORS,
    Artifact,
    T,
    artifact_name,
)
from ingestion.chunk import chunk
from ingestion.enrich import FOUND, Source, Tools, enrich
from ingestion.enrich.scrub import masked_extract
from ingestion.lease_keeper import LeaseKeeper
from ingestion.parts import Chunk, Enriched, ExtractedText, Section
from ingestion.sectionize import sectionize
from ingestion.workshop import Workshop
from models.analyzer import VERSION as ANALYZER
from stores.blobs import original_name
from stores.ledger import Claim, Step, VersionRecord
from stores.ledger.vectors import text_hash
from stores.levels import PASSAGE
from stores.options import Options
from stores.records import ChunkRecord, DocumentRecord, Vector

EMBED_BATCH = 16
"""Chunks between two looks at the lease; each batch's vectors are kept at once in the cache."""


@dataclass(frozen=True)
class Work:
    """A claimed step with what it may use."""

    shop: Workshop
    claim: Claim
    keeper: LeaseKeeper

    @property
    def version(self) -> VersionRecord:
        """The version that is worked on."""
        return self.claim.record

    @cached_property
    def options(self) -> Options:
        """Those of the collection, as they stood when the step was begun."""
        return self.shop.ledger.collections.get(self.version.collection).options

    def read(self, step: Step, kind: Artifact[T]) -> T:
        """The output of an earlier step; FileNotFoundError where it is not kept."""
        name = self.claim.artifacts.get(step)
        if name is None:
            raise FileNotFoundError(f"{step} of {self.version.document_id} left no artifact")
        return kind.load(self.shop.blobs.read(self.version.document_id, name))


@dataclass(frozen=True)
class Stored:
    """What upsert left in the store."""

    chunk_ids: Sequence[str]
    counts: dict[str, int] = field(default_factory=dict)


def name_of(work: Work) -> str:
    """The artifact name of the claimed step."""
    step, settings = work.claim.step, work.shop.settings
    matters: dict[Step, tuple[str, dict[str, Any]]] = {
        "extract": (
            work.version.sha256,
            {
                "filename": work.version.filename,
                "json": _json_fields(settings.extract),
                "masked": work.options.scrub == "text",
            },
        ),
        "sectionize": (work.claim.artifacts.get("extract", ""), {}),
        "chunk": (work.claim.artifacts.get("sectionize", ""), settings.chunking.model_dump()),
        "enrich": (work.claim.artifacts.get("chunk", ""), _enriched_by(work)),
        "embed": (work.claim.artifacts.get("chunk", ""), {"model": work.shop.embedder.model}),
    }
    source, settings_that_matter = matters[step]
    return artifact_name(step, source, **settings_that_matter)


def _json_fields(settings: ExtractSettings) -> list[str | None]:
    return [settings.json_title, settings.json_text, settings.json_properties]


def _enriched_by(work: Work) -> dict[str, Any]:
    shop, options = work.shop, work.options
    return {
        "analyzer": ANALYZER,
        "recognizer": shop.recognizer.version,
        "options": options.model_dump(mode="json"),
        "confirmer": shop.confirmer.model if options.confirm and shop.confirmer else "",
        "name": work.version.name,
        "given": {n: v for n, v in work.version.properties.items() if n in FOUND},
    }


def extract_text(work: Work) -> ExtractedText:
    """Read the original in the limited child process."""
    original = work.shop.blobs.read(work.version.document_id, original_name(work.version.sha256))
    extracted = work.shop.extractor.extract(original, work.version.filename)
    return masked_extract(extracted) if work.options.scrub == "text" else extracted


def find_sections(work: Work) -> list[Section]:
    """Find the headings."""
    return sectionize(work.read("extract", EXTRACTED))


def cut_chunks(work: Work) -> list[Chunk]:
    """Cut the sections into passages that the embedder reads whole."""
    extracted = work.read("extract", EXTRACTED)
    sections = work.read("sectionize", SECTIONS)
    return chunk(
        extracted.text,
        sections,
        work.shop.tokenizer,
        work.shop.settings.chunking,
        work.version.document_id,
        extracted.blocks,
    )


def enrich_chunks(work: Work) -> Enriched:
    """Add language and keyword terms, entities, days and facets."""
    version, options, shop = work.version, work.options, work.shop
    if options.confirm and shop.confirmer is None:
        raise SettingsError(
            f"collection {version.collection!r} asks a language model about its entities,"
            " but llm.base_url is not set",
            hint="Set llm.base_url and llm.model, or the collection's option confirm to false.",
        )
    source = Source(work.read("extract", EXTRACTED), version.name, version.properties)
    chunks = work.read("chunk", CHUNKS)
    tools = Tools(shop.analyzer, shop.recognizer, shop.confirmer)
    return enrich(source, chunks, options, tools)


def embed_chunks(work: Work) -> Vector:
    """One vector per chunk, shape (chunks, dimension); known ones from the cache."""
    embedder, cache = work.shop.embedder, work.shop.ledger.vectors
    text = work.read("extract", EXTRACTED).text
    chunks = work.read("chunk", CHUNKS)
    texts = [c.read(text) for c in chunks]
    hashes = [text_hash(t) for t in texts]
    work.shop.ledger.chunks.expect(
        work.claim, {c.chunk_id: h for c, h in zip(chunks, hashes, strict=True)}
    )  # so that a deletion finds their vectors too
    found = dict(cache.get(embedder.model, hashes))
    missing = {h: t for h, t in zip(hashes, texts, strict=True) if h not in found}
    by_length = sorted(missing.items(), key=lambda item: len(item[1]))
    for start in range(0, len(by_length), EMBED_BATCH):
        batch = by_length[start : start + EMBED_BATCH]
        vectors = embedder.passages([t for _, t in batch])
        new = {h: vector for (h, _), vector in zip(batch, vectors, strict=True)}
        work.keeper.check()
        cache.put(embedder.model, new)
        found |= new
    return np.stack([found[h] for h in hashes])


def upsert_chunks(work: Work) -> Stored:
    """Write the document and its chunks of all levels, see each object's outcome, count them."""
    version, ledger = work.version, work.shop.ledger
    collection = ledger.collections.get(version.collection)
    store, tenant = work.shop.store_of(collection.store), version.tenant
    try:
        document, chunks = _made(work)
        ids = [c.chunk_id for c in chunks]
    except FileNotFoundError:
        if ledger.documents.get(version.document_id).live_version != version.version:
            raise
        ids = sorted(ledger.chunks.live_ids(version.document_id))
        document, chunks = records.kept(version, store, ids, work.shop.analyzer)
    ledger.chunks.expect(work.claim, {c.chunk_id: _hash(c) for c in chunks})
    names = set(document.properties).union(FOUND, *(c.properties for c in chunks))
    ledger.collections.has_properties(version.collection, names)
    try:
        if tenant:
            store.ensure_tenant(version.collection, tenant)
        failed = store.batch_upsert_documents(version.collection, [document], tenant=tenant).failed
    except CollectionNotFound:  # the ledger has it
        raise StoreDown(
            f"store {store.kind!r} has lost collection {version.collection!r}",
            hint="`callslip audit --repair` makes it anew from the ledger.",
        ) from None
    _whole(failed)
    size = work.shop.settings.ingest.batch_size
    for start in range(0, len(chunks), size):
        work.keeper.check()
        some = chunks[start : start + size]
        _whole(store.batch_upsert_chunks(version.collection, some, tenant=tenant).failed)
    written = {c.chunk_id for c in chunks}
    held = store.chunk_ids(version.collection, version.document_id, tenant=tenant)
    for half in ("vector", "keyword"):
        if lacking := len(written - held[half]):
            raise StoreDown(f"the {half} half of the store lacks {lacking} of {len(ids)} chunks")
    passages = sum(c.level >= PASSAGE for c in chunks)
    return Stored(ids, {"chunks": passages, "parents": len(ids) - passages})


def _made(work: Work) -> tuple[DocumentRecord, list[ChunkRecord]]:
    return records.made(
        work.version,
        work.read("extract", EXTRACTED),
        work.read("enrich", ENRICHED),
        work.read("embed", VECTORS),
    )


def _hash(chunk: ChunkRecord) -> str:
    """The hash of the text that a chunk's vector is of; no text for a mean of vectors."""
    return text_hash(chunk.body) if chunk.level >= PASSAGE else ""


def _whole(failed: Mapping[str, str]) -> None:
    if failed:
        object_id, reason = next(iter(failed.items()))
        raise ObjectRefused(f"the store refused {len(failed)} objects, first {object_id}: {reason}")
