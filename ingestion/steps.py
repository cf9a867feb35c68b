"""The steps of a document, each from the artifacts of the ones before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from callslip.errors import CollectionNotFound, ObjectRefused, SettingsError, StoreDown
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
    made_alike,
)
from ingestion.chunk import chunk
from ingestion.context import lacks, line_of
from ingestion.enrich import Source, Tools, enrich
from ingestion.enrich.scrub import masked_extract
from ingestion.former import NEVER_CUT, FormerCuts
from ingestion.parts import Chunk, Enriched, ExtractedText, Section
from ingestion.sectionize import sectionize
from ingestion.workshop import Workshop
from models.analyzer import VERSION as ANALYZER
from stores.blobs import original_name
from stores.ledger import Claim, LeaseKeeper, Step, VersionRecord
from stores.ledger.chunks import Span
from stores.ledger.vectors import text_hash
from stores.levels import PASSAGE
from stores.options import Options
from stores.records import FOUND, ChunkRecord, DocumentRecord, Vector

EMBED_BATCH = 16
"""Chunks between two looks at the lease; each batch's vectors are kept at once in the cache."""

OF_OTHERS = {"ranking", "json_fields", "keep_queries"}
"""Options that do not matter to enrichment."""


@dataclass(frozen=True)
class Work:
    """A claimed step with what it may use."""

    shop: Workshop
    claim: Claim
    keeper: LeaseKeeper
    counts: dict[str, int] = field(default_factory=dict)
    """What the step did, beside what it put out."""

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

    @cached_property
    def former_artifacts(self) -> dict[Step, str]:
        """What the steps of the version before put out, by name."""
        if self.version.former is None:
            return {}
        return self.shop.ledger.inventory.artifacts(self.version.document_id, self.version.former)

    def former_name(self, step: Step) -> str | None:
        """The name of what a step of the version before put out, if it was made alike."""
        name = self.former_artifacts.get(step)
        return name if name and made_alike(name, step, **_matters(self, step)) else None

    def former(self, step: Step, kind: Artifact[T]) -> T | None:
        """What a step of the version before put out, if it was made alike and is kept."""
        name = self.former_name(step)
        if name is None or not self.shop.blobs.exists(self.version.document_id, name):
            return None
        return kind.load(self.shop.blobs.read(self.version.document_id, name))


@dataclass(frozen=True)
class Stored:
    """What upsert left in the store."""

    chunk_ids: Sequence[str]
    counts: dict[str, int] = field(default_factory=dict)


def name_of(work: Work) -> str:
    """The artifact name of the claimed step."""
    step, made = work.claim.step, work.claim.artifacts
    if step == "chunk":
        return _name_of_chunks(work)
    sources: dict[Step, str] = {
        "extract": work.version.sha256,
        "sectionize": made.get("extract", ""),
        "enrich": made.get("chunk", ""),
        "embed": made.get("chunk", ""),
    }
    return artifact_name(step, sources[step], **_matters(work, step))


def _name_of_chunks(work: Work) -> str:
    """Chunks depend on where the version before was cut: the same text keeps that one's."""
    sections = work.claim.artifacts.get("sectionize", "")
    former = work.former_name("chunk")
    if former is not None and work.former_artifacts.get("sectionize") == sections:
        return former
    return artifact_name("chunk", sections, former or "", **_matters(work, "chunk"))


def _matters(work: Work, step: Step) -> dict[str, Any]:
    """The settings that matter to a step's output."""
    match step:
        case "extract":
            return {
                "filename": work.version.filename,
                "json": _json_fields(work),
                "masked": work.options.scrub == "text",
            }
        case "chunk":
            return work.shop.settings.chunking.model_dump()
        case "enrich":
            return _enriched_by(work)
        case "embed":
            return {"model": work.shop.embedder.model, "title": line_of(_title(work))}
    return {}


def _json_fields(work: Work) -> list[str | None]:
    """Those of the collection, else those of the settings."""
    settings, own = work.shop.settings.extract, work.options.json_fields.settings()
    usual = {n: getattr(settings, n) for n in ("json_title", "json_text", "json_properties")}
    return list((usual | own).values())


def _enriched_by(work: Work) -> dict[str, Any]:
    shop, options = work.shop, work.options
    return {
        "analyzer": ANALYZER,
        "recognizer": shop.recognizer.version,
        "options": options.model_dump(
            mode="json", exclude={"ranking", "json_fields", "keep_queries"}
        ),
        "confirmer": shop.confirmer.model if options.confirm and shop.confirmer else "",
        "name": work.version.name,
        "title": line_of(_title(work)),
        "given": {n: v for n, v in work.version.properties.items() if n in FOUND},
    }


def extract_text(work: Work) -> ExtractedText:
    """Read the original in the limited child process."""
    version, options = work.version, work.options
    original = work.shop.blobs.read(version.document_id, original_name(version.sha256))
    fields = options.json_fields.settings()
    extracted = work.shop.extractor.extract(original, version.filename, fields)
    return masked_extract(extracted) if options.scrub == "text" else extracted


def find_sections(work: Work) -> list[Section]:
    """Find the headings."""
    return sectionize(work.read("extract", EXTRACTED))


def cut_chunks(work: Work) -> list[Chunk]:
    """Cut the sections into passages that the embedder reads whole, where they were cut before."""
    extracted = work.read("extract", EXTRACTED)
    sections = work.read("sectionize", SECTIONS)
    former, text = work.former("chunk", CHUNKS), work.former("extract", EXTRACTED)
    return chunk(
        extracted.text,
        sections,
        work.shop.tokenizer,
        work.shop.settings.chunking,
        work.version.document_id,
        extracted.blocks,
        FormerCuts(text.text, former) if text and former else NEVER_CUT,
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
    former = work.former("enrich", ENRICHED)
    known = {e.chunk.chunk_id: e for e in former.chunks} if former else {}
    enriched = enrich(source, chunks, options, tools, known)
    title = line_of(_title(work))
    if former is not None and former.title == title:
        return replace(enriched, title=title, title_terms=former.title_terms)
    return replace(enriched, title=title, title_terms=shop.analyzer.analyze(title) if title else "")


def embed_chunks(work: Work) -> Vector:
    """One vector per chunk, shape (chunks, dimension); known ones from the cache, or as before."""
    text = work.read("extract", EXTRACTED).text
    chunks = work.read("chunk", CHUNKS)
    texts = [c.read(text) for c in chunks]
    hashes = [text_hash(t) for t in texts]
    work.shop.ledger.chunks.expect(
        work.claim,
        {c.chunk_id: h for c, h in zip(chunks, hashes, strict=True)},
        {c.chunk_id: (c.start, c.end) for c in chunks},
    )  # so that a deletion finds their vectors too
    known = zip(chunks, hashes, strict=True)
    former = _former_vectors(work)
    before = {h: former[c.chunk_id] for c, h in known if c.chunk_id in former}
    contexts = _contexts(work, chunks, texts)
    work.counts["embedded"] = 0
    found: dict[tuple[str, str], Vector] = {}
    for context in dict.fromkeys(contexts):
        its = {h: t for h, t, c in zip(hashes, texts, contexts, strict=True) if c == context}
        found |= {(context, h): v for h, v in _embedded(work, context, its, before).items()}
    return np.stack([found[key] for key in zip(contexts, hashes, strict=True)])


def _contexts(work: Work, chunks: Sequence[Chunk], texts: Sequence[str]) -> list[str]:
    """The line that each passage is embedded under; empty where it needs none or has no room."""
    line = line_of(_title(work))
    room = work.shop.embedder.max_tokens - len(work.shop.tokenizer.offsets(line)) - 1
    return [
        line if c.tokens <= room and lacks(t, line) else ""
        for c, t in zip(chunks, texts, strict=True)
    ]


def _title(work: Work) -> str:
    return work.version.title or work.read("extract", EXTRACTED).title or ""


def _embedded(
    work: Work, context: str, texts: Mapping[str, str], before: Mapping[str, Vector]
) -> dict[str, Vector]:
    """The vectors of texts, by hash, under one context: cached, as before, or made now.

    The cache knows a text by its own hash, whatever it was embedded under, so that a deletion
    finds all of its vectors.
    """
    embedder, cache = work.shop.embedder, work.shop.ledger.vectors
    made_by = f"{embedder.model}+{text_hash(context)[:16]}" if context else embedder.model
    found = dict(cache.get(made_by, list(texts)))
    found |= {h: before[h] for h in texts.keys() - found.keys() if h in before}
    missing = {h: t for h, t in texts.items() if h not in found}
    by_length = sorted(missing.items(), key=lambda item: len(item[1]))
    for start in range(0, len(by_length), EMBED_BATCH):
        batch = by_length[start : start + EMBED_BATCH]
        vectors = embedder.passages([context + t for _, t in batch])
        new = {h: vector for (h, _), vector in zip(batch, vectors, strict=True)}
        work.keeper.check()
        cache.put(made_by, new)
        found |= new
    work.counts["embedded"] += len(missing)
    return found


def _former_vectors(work: Work) -> dict[str, Vector]:
    """The vectors of the version before by chunk id: the cache is bounded, and may be off."""
    chunks, vectors = work.former("chunk", CHUNKS), work.former("embed", VECTORS)
    if chunks is None or vectors is None or len(chunks) != len(vectors):
        return {}
    return {c.chunk_id: vector for c, vector in zip(chunks, vectors, strict=True)}


def upsert_chunks(work: Work) -> Stored:
    """Write what the store does not hold yet of all levels, see each outcome, count what is there.

    What is new comes first: it is not seen yet. What changes in chunks that searches see already,
    such as a property, comes last, just before the version goes live.
    """
    version, ledger = work.version, work.shop.ledger
    collection = ledger.collections.get(version.collection)
    store, tenant = work.shop.store_of(collection.store), version.tenant
    spans: dict[str, Span] | None = None
    try:
        document, chunks = _made(work)
        ids = [c.chunk_id for c in chunks]
        spans = {c.chunk_id: (c.start, c.end) for c in chunks}
    except FileNotFoundError:
        if ledger.documents.get(version.document_id).live_version != version.version:
            raise
        ids = sorted(ledger.chunks.live_ids(version.document_id))
        document, chunks = records.kept(version, store, ids, work.shop.analyzer)
    ledger.chunks.expect(work.claim, {c.chunk_id: _hash(c) for c in chunks}, spans)
    names = set(document.properties).union(*(c.properties for c in chunks))
    ledger.collections.has_properties(version.collection, names)
    try:
        if tenant:
            store.ensure_tenant(version.collection, tenant)
        new, changed = records.unlike(version, store, chunks)
    except CollectionNotFound:  # the ledger has it
        raise StoreDown(
            f"store {store.kind!r} has lost collection {version.collection!r}",
            hint="`callslip audit --repair` makes it anew from the ledger.",
        ) from None
    size = work.shop.settings.ingest.batch_size
    batches = [some[at : at + size] for some in (new, changed) for at in range(0, len(some), size)]
    for batch in batches:
        work.keeper.check()
        _whole(store.batch_upsert_chunks(version.collection, batch, tenant=tenant).failed)
    _whole(store.batch_upsert_documents(version.collection, [document], tenant=tenant).failed)
    written = {c.chunk_id for c in chunks}
    held = store.chunk_ids(version.collection, version.document_id, tenant=tenant)
    for half in ("vector", "keyword"):
        if lacking := len(written - held[half]):
            raise StoreDown(f"the {half} half of the store lacks {lacking} of {len(ids)} chunks")
    passages = sum(c.level >= PASSAGE for c in chunks)
    counts = {"chunks": passages, "parents": len(ids) - passages}
    return Stored(ids, counts | {"written": len(new) + len(changed)})


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
