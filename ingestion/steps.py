"""The ingestion steps of a document; each step reads the artifacts of earlier steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from callslip.config.settings import ChunkingSettings
from callslip.errors import (
    CollectionNotFound,
    EmbedderDown,
    ObjectRefused,
    SettingsError,
    StoreDown,
)
from callslip.ingestion import records
from callslip.ingestion.artifacts import (
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
from callslip.ingestion.chunks.chunk import chunk
from callslip.ingestion.chunks.previous_cuts import NEVER_CUT, PreviousCuts
from callslip.ingestion.chunks.title_context import lacks, line_of
from callslip.ingestion.context import StepContext
from callslip.ingestion.corrections.applying import corrected
from callslip.ingestion.corrections.cuts import edits_of, repeated_cuts
from callslip.ingestion.corrections.edits import Edit
from callslip.ingestion.enrich import Source, Tools, enrich
from callslip.ingestion.enrich.scrub import masked_extract
from callslip.ingestion.page_units import page_table
from callslip.ingestion.reading import read_original
from callslip.ingestion.sections.sectionize import sectionize
from callslip.ingestion.values import Chunk, Enriched, ExtractedText, Section
from callslip.languages import DEFAULT
from callslip.messages.options import Options
from callslip.models.embedders.choice import embedder_of
from callslip.models.embedders.contract import Embedder
from callslip.models.text.analyzer import Analyzer
from callslip.models.text.kinds import analyzer_of, kind_of, version_of_kind
from callslip.stores.batching import batches
from callslip.stores.blobs import original_name
from callslip.stores.contract import Store
from callslip.stores.ledger import Claim, LeaseKeeper, PageTable, Step, VersionRecord
from callslip.stores.ledger.caches.vectors import text_hash
from callslip.stores.ledger.documents.chunks import Span
from callslip.stores.levels import PASSAGE
from callslip.stores.records import (
    AUDIENCE,
    ENRICHED_PROPERTIES,
    ChunkRecord,
    DocumentRecord,
    Vector,
    for_audience,
)

EMBED_BATCH = 16
"""Chunks per embedding batch. After each batch the step checks its lease and caches the vectors."""


@dataclass(frozen=True)
class Work:
    """A claimed step with its context and its lease."""

    context: StepContext
    claim: Claim
    keeper: LeaseKeeper
    counts: dict[str, int] = field(default_factory=dict)
    """Counters that the step reports in addition to its output."""

    @property
    def version(self) -> VersionRecord:
        """The version that the step processes."""
        return self.claim.record

    @cached_property
    def options(self) -> Options:
        """The collection's options, read once at their first use in the step."""
        return self.context.ledger.collections.get(self.version.collection).options

    @cached_property
    def models(self) -> dict[str, str]:
        """The models of the collection's vectors by name, read once; "" names the default one."""
        return self.context.ledger.collections.get(self.version.collection).models

    def embedder(self, vector_name: str = "") -> Embedder:
        """The embedder of the vectors of this name; the present one if there is none."""
        its = self.context
        model = self.models[vector_name]
        return embedder_of(model, its.embedder, its.previous, its.further.values())

    @cached_property
    def analyzed_by(self) -> str:
        """The version of the collection's analyzer, as its record names it."""
        return self.context.ledger.collections.get(self.version.collection).analyzer

    @property
    def analyzer(self) -> Analyzer:
        """The analyzer of the collection."""
        return analyzer_of(self.analyzed_by, self.context.analyzer)

    @property
    def chunking(self) -> ChunkingSettings:
        """The lengths of the version's chunks: its own, or those of the settings."""
        own = self.version.chunking
        return ChunkingSettings(**own) if own else self.context.settings.chunking

    def read(self, step: Step, kind: Artifact[T]) -> T:
        """Return the output of an earlier step.

        Raises FileNotFoundError if the artifact is not stored.
        """
        name = self.claim.artifacts.get(step)
        if name is None:
            raise FileNotFoundError(f"{step} of {self.version.document_id} left no artifact")
        return kind.load(self.context.blobs.read(self.version.document_id, name))

    @cached_property
    def previous_artifacts(self) -> dict[Step, str]:
        """The artifact names of the previous version, by step."""
        if self.version.previous_version is None:
            return {}
        return self.context.ledger.inventory.artifacts(
            self.version.document_id, self.version.previous_version
        )

    def previous_name(self, step: Step) -> str | None:
        """Return the previous version's artifact name if its settings are equal, else None."""
        name = self.previous_artifacts.get(step)
        return name if name and made_alike(name, step, **_matters(self, step)) else None

    def previous(self, step: Step, kind: Artifact[T]) -> T | None:
        """Return the previous version's output if its settings are equal and it is stored."""
        name = self.previous_name(step)
        if name is None or not self.context.blobs.exists(self.version.document_id, name):
            return None
        return kind.load(self.context.blobs.read(self.version.document_id, name))


@dataclass(frozen=True)
class Stored:
    """The result of the upsert step: chunk ids of the document, their audience, and counters."""

    chunk_ids: Sequence[str]
    audience: str
    counts: dict[str, int] = field(default_factory=dict)


def name_of(work: Work) -> str:
    """Return the artifact name of the claimed step."""
    step, made = work.claim.step, work.claim.artifacts
    if step == "extract":
        return artifact_name(step, *_extracted_from(work), **_matters(work, step))
    if step == "chunk":
        return _name_of_chunks(work)
    sources: dict[Step, str] = {
        "sectionize": made.get("extract", ""),
        "enrich": made.get("chunk", ""),
        "embed": made.get("chunk", ""),
    }
    return artifact_name(step, sources[step], **_matters(work, step))


def _extracted_from(work: Work) -> tuple[str, ...]:
    """Return what the extracted text depends on: the original and the corrections of its text."""
    made = (str((c.start, c.context, c.corrected)) for c in work.version.corrections)
    return work.version.sha256, *made


def _name_of_chunks(work: Work) -> str:
    """Return the artifact name of the chunks.

    Chunks depend on the cuts of the previous version. If the sections are the same, the previous
    version's chunks are reused.
    """
    sections = work.claim.artifacts.get("sectionize", "")
    previous = work.previous_name("chunk")
    if previous is not None and work.previous_artifacts.get("sectionize") == sections:
        return previous
    return artifact_name("chunk", sections, previous or "", **_matters(work, "chunk"))


def _matters(work: Work, step: Step) -> dict[str, Any]:
    """Return the settings that affect a step's output."""
    match step:
        case "extract":
            return {
                "filename": work.version.filename,
                "json": _json_fields(work),
                "masked": work.options.scrub == "text",
            } | _layout_server(work)
        case "chunk":
            return work.chunking.model_dump() | _languages(work)
        case "sectionize":
            return _languages(work)
        case "enrich":
            return _enriched_by(work)
        case "embed":
            named = {name: model for name, model in work.models.items() if name}
            matters = {"model": work.embedder().model, "title": line_of(_title(work))}
            return matters | ({"named": named} if named else {})
    return {}


def _languages(work: Work) -> dict[str, Any]:
    """Return the languages if they differ from the default, else an empty mapping."""
    codes = work.context.settings.language_codes
    return {} if codes == DEFAULT else {"languages": codes}


def _layout_server(work: Work) -> dict[str, Any]:
    """Return what is sent to the layout server, an empty mapping without one."""
    settings = work.context.settings.layout
    return {"layout": settings.formats} if work.context.layout_server else {}


def _json_fields(work: Work) -> list[str | None]:
    """Return the JSON fields of the collection; the settings supply those that it does not have."""
    settings, own = work.context.settings.extract, work.options.json_fields.settings()
    usual = {n: getattr(settings, n) for n in ("json_title", "json_text", "json_properties")}
    return list((usual | own).values())


_UNRELATED = {
    *("analyzer", "ranking", "json_fields", "keep_queries", "valid_from_default"),
    *("facets", "apply_proposals"),
}
"""Options that do not affect enrichment; the analyzer is that of the collection's record."""


def _enriched_by(work: Work) -> dict[str, Any]:
    context, options = work.context, work.options
    return {
        "analyzer": version_of_kind(context.settings.language_codes, kind_of(work.analyzed_by)),
        "recognizer": context.recognizer.version,
        "options": options.model_dump(mode="json", exclude=_UNRELATED),
        "confirmer": context.confirmer.model if options.confirm and context.confirmer else "",
        "name": work.version.name,
        "title": line_of(_title(work)),
        "given": {n: v for n, v in work.version.properties.items() if n in ENRICHED_PROPERTIES},
    } | ({"by_hand": by_hand} if (by_hand := _bounds_by_hand(work.version)) else {})


def _bounds_by_hand(version: VersionRecord) -> list[str]:
    """Return the bounds of validity that an edit set."""
    return [name for name in ("valid_from", "valid_to") if f"properties.{name}" in version.by_hand]


def extract_text(work: Work) -> ExtractedText:
    """Extract the text of the original, and apply the corrections that the version has."""
    if not work.version.corrections:
        return _read_original(work)
    extracted = corrected(_uncorrected(work), work.version.corrections)
    return masked_extract(extracted) if work.options.scrub == "text" else extracted


def _uncorrected(work: Work) -> ExtractedText:
    """Return the text before its corrections, which is stored too: reading may be slow (OCR)."""
    document_id, blobs = work.version.document_id, work.context.blobs
    name = artifact_name("extract", work.version.sha256, **_matters(work, "extract"))
    if blobs.exists(document_id, name):
        known = EXTRACTED.load(blobs.read(document_id, name))
        if not known.attachments:  # an artifact has no content of attachments
            return known
    extracted = _read_original(work)
    work.keeper.check()  # write nothing after a deletion of the document
    blobs.write(document_id, name, EXTRACTED.dump(extracted))
    return extracted


def _read_original(work: Work) -> ExtractedText:
    """Extract the text of the original in a child process with resource limits."""
    version, options = work.version, work.options
    original = work.context.blobs.read(version.document_id, original_name(version.sha256))
    fields = options.json_fields.settings()
    extracted = read_original(work.context, original, version.filename, fields)
    return masked_extract(extracted) if options.scrub == "text" else extracted


def find_sections(work: Work) -> list[Section]:
    """Divide the extracted text into sections by its headings."""
    return sectionize(work.read("extract", EXTRACTED), work.context.settings.language_codes)


def cut_chunks(work: Work) -> list[Chunk]:
    """Cut the sections into passages that fit the embedder.

    Reuse the previous version's cuts if possible; keep them if the version only corrects its text.
    """
    extracted = work.read("extract", EXTRACTED)
    sections = work.read("sectionize", SECTIONS)
    previous, text = work.previous("chunk", CHUNKS), work.previous("extract", EXTRACTED)
    if previous and text and (edits := _edits(work, text, extracted, sections)) is not None:
        return repeated_cuts(
            work.version.document_id, extracted.text, previous, edits, work.context.tokenizer
        )
    return chunk(
        extracted.text,
        sections,
        work.context.tokenizer,
        work.chunking,
        work.version.document_id,
        extracted.blocks,
        PreviousCuts(text.text, previous) if text and previous else NEVER_CUT,
        work.context.settings.language_codes,
    )


def _edits(
    work: Work, previous: ExtractedText, extracted: ExtractedText, sections: Sequence[Section]
) -> list[Edit] | None:
    """Return the edits since the previous version if all are corrections within its sections.

    None for any other version: its text is cut anew.
    """
    version = work.version
    if not version.corrections or version.previous_version is None:
        return None
    before = work.context.ledger.documents.version(version.document_id, version.previous_version)
    known = [each.correction_id for each in before.corrections]
    ids = [each.correction_id for each in version.corrections]
    headed = [(s.path, s.heading) for s in work.previous("sectionize", SECTIONS) or ()]
    if before.sha256 != version.sha256 or ids[: len(known)] != known:
        return None
    if headed != [(s.path, s.heading) for s in sections]:
        return None
    return edits_of(previous.text, version.corrections[len(known) :], extracted.text)


def enrich_chunks(work: Work) -> Enriched:
    """Add language, keyword terms, entities, dates and facets to the chunks.

    Raises SettingsError if the collection uses a language model but none is configured.
    """
    version, options, context = work.version, work.options, work.context
    if options.confirm and context.confirmer is None:
        raise SettingsError(
            f"collection {version.collection!r} asks a language model about its entities,"
            " but llm.base_url is not set",
            hint="Set llm.base_url and llm.model, or the collection's option confirm to false.",
        )
    extracted = work.read("extract", EXTRACTED)
    source = Source(extracted, version.name, version.properties, _bounds_by_hand(version))
    chunks = work.read("chunk", CHUNKS)
    tools = Tools(
        work.analyzer,
        context.recognizer,
        context.confirmer,
        context.settings.language_codes,
    )
    previous = work.previous("enrich", ENRICHED)
    known = {e.chunk.chunk_id: e for e in previous.chunks} if previous else {}
    enriched = enrich(source, chunks, options, tools, known)
    title = line_of(_title(work))
    if previous is not None and previous.title == title:
        return replace(enriched, title=title, title_terms=previous.title_terms)
    return replace(enriched, title=title, title_terms=work.analyzer.analyze(title) if title else "")


def embed_chunks(work: Work) -> dict[str, Vector]:
    """Return one vector per chunk for each name of vectors, shape (chunks, dimension).

    Vectors of unchanged texts come from the cache or from the previous version. The step fails as a
    whole if one of the embedders does not answer; what the others made is in the cache then.
    """
    _check_embedders(work)
    text = work.read("extract", EXTRACTED).text
    chunks = work.read("chunk", CHUNKS)
    texts = [c.read(text) for c in chunks]
    hashes = [text_hash(t) for t in texts]
    work.context.ledger.chunks.expect(
        work.claim,
        {c.chunk_id: h for c, h in zip(chunks, hashes, strict=True)},
        {c.chunk_id: (c.start, c.end) for c in chunks},
    )  # so that a deletion also finds the vectors of these chunks
    previous = _previous_vectors(work)
    work.counts["embedded"] = 0
    return {
        name: _vectors(work, work.embedder(name), chunks, texts, previous.get(name, {}))
        for name in work.models
    }


def _vectors(
    work: Work,
    embedder: Embedder,
    chunks: Sequence[Chunk],
    texts: Sequence[str],
    previous: Mapping[str, Vector],
) -> Vector:
    """Return the vectors of one embedder; `previous` has those of the previous version by chunk."""
    hashes = [text_hash(t) for t in texts]
    known = zip(chunks, hashes, strict=True)
    before = {h: previous[c.chunk_id] for c, h in known if c.chunk_id in previous}
    contexts = _contexts(work, embedder, chunks, texts)
    vectors_by_key: dict[tuple[str, str], Vector] = {}
    for context in dict.fromkeys(contexts):
        its = {h: t for h, t, c in zip(hashes, texts, contexts, strict=True) if c == context}
        vectors_by_key |= {
            (context, h): v for h, v in _embedded(work, embedder, context, its, before).items()
        }
    return np.stack([vectors_by_key[key] for key in zip(contexts, hashes, strict=True)])


def _check_embedders(work: Work) -> None:
    """Raise EmbedderDown while the installation runs other embedders than the collection's."""
    collection = work.version.collection
    for name, model in work.models.items():
        if work.embedder(name).model != model:
            vectors = f" (vector {name!r})" if name else ""
            raise EmbedderDown(
                f"collection {collection!r}{vectors} is embedded by {model!r}, this"
                f" installation runs {work.embedder().model!r}",
                hint=f"`callslip reindex {collection}` embeds it anew; or set the embedder back.",
            )


def _contexts(
    work: Work, embedder: Embedder, chunks: Sequence[Chunk], texts: Sequence[str]
) -> list[str]:
    """Return the title line of each passage.

    The line is empty if the passage already has the title, or if both together are too long.
    """
    line = line_of(_title(work))
    room = embedder.max_tokens - len(work.context.tokenizer.offsets(line)) - 1
    return [
        line if c.tokens <= room and lacks(t, line) else ""
        for c, t in zip(chunks, texts, strict=True)
    ]


def _title(work: Work) -> str:
    return work.version.title or work.read("extract", EXTRACTED).title or ""


def _embedded(
    work: Work,
    embedder: Embedder,
    context: str,
    texts: Mapping[str, str],
    before: Mapping[str, Vector],
) -> dict[str, Vector]:
    """Return the vectors of texts with one title line, by text hash.

    A vector comes from the cache, from the previous version, or from the embedder. The cache key
    has the hash of the text without the title line, so that a deletion finds all its vectors.
    """
    cache = work.context.ledger.vectors
    made_by = f"{embedder.model}+{text_hash(context)[:16]}" if context else embedder.model
    vectors_by_key = dict(cache.get(made_by, list(texts)))
    vectors_by_key |= {h: before[h] for h in texts.keys() - vectors_by_key.keys() if h in before}
    missing = {h: t for h, t in texts.items() if h not in vectors_by_key}
    by_length = sorted(missing.items(), key=lambda item: len(item[1]))
    for start in range(0, len(by_length), EMBED_BATCH):
        batch = by_length[start : start + EMBED_BATCH]
        vectors = embedder.passages([context + t for _, t in batch])
        new = {h: vector for (h, _), vector in zip(batch, vectors, strict=True)}
        work.keeper.check()
        cache.put(made_by, new)
        vectors_by_key |= new
    work.counts["embedded"] += len(missing)
    return vectors_by_key


def _previous_vectors(work: Work) -> dict[str, dict[str, Vector]]:
    """Return the previous version's vectors by vector name and chunk id.

    They are needed because the cache is bounded and can be disabled.
    """
    chunks, vectors = work.previous("chunk", CHUNKS), work.previous("embed", VECTORS)
    if chunks is None or vectors is None or len(chunks) != len(vectors[""]):
        return {}
    ids = [c.chunk_id for c in chunks]
    return {name: dict(zip(ids, rows, strict=True)) for name, rows in vectors.items()}


def upsert_chunks(work: Work) -> Stored:
    """Write new and changed chunks of all levels, check each result and count the stored chunks.

    New chunks are written first, because searches do not see them yet. Changes of chunks that
    searches already see, such as a changed property, are written last, just before the version
    goes live.

    Raises StoreDown if the store lost the collection or some chunks, ObjectRefused if the store
    refused an object, FileNotFoundError if an artifact is missing and the version is not live.
    """
    version, ledger = work.version, work.context.ledger
    collection = ledger.collections.get(version.collection)
    store, tenant = work.context.store_of(collection.store), version.tenant
    created_at = ledger.documents.get(version.document_id).created_at
    spans: dict[str, Span] | None = None
    pages: PageTable | None = None
    try:
        extracted = work.read("extract", EXTRACTED)
        document, chunks = _made(work, extracted, created_at)
        pages = page_table(extracted)
        ids = [c.chunk_id for c in chunks]
        spans = {c.chunk_id: (c.start, c.end) for c in chunks}
    except FileNotFoundError:
        if ledger.documents.get(version.document_id).live_version != version.version:
            raise
        ids = sorted(ledger.chunks.live_ids(version.document_id))
        document, chunks = records.still_stored(version, store, ids, work.analyzer, created_at)
    audience = ledger.readers.audience(version.document_id)
    document, chunks = for_audience(audience, document, chunks)
    ledger.chunks.expect(work.claim, {c.chunk_id: _hash(c) for c in chunks}, spans, pages)
    names = set(document.properties).union(*(c.properties for c in chunks))
    ledger.collections.has_properties(version.collection, names - {AUDIENCE})
    try:
        if tenant:
            store.ensure_tenant(version.collection, tenant)
        new, changed = records.unlike(version, store, chunks)
    except CollectionNotFound:  # the ledger has it
        raise StoreDown(
            f"store {store.kind!r} has lost collection {version.collection!r}",
            hint="`callslip audit --repair` creates it again from the ledger.",
        ) from None
    for some in (new, changed):
        _write(work, store, some)
    _whole(store.batch_upsert_documents(version.collection, [document], tenant=tenant).failed)
    stored_ids = store.chunk_ids(version.collection, version.document_id, tenant=tenant)
    for half, lacking in records.lacking(chunks, stored_ids).items():
        raise StoreDown(f"the {half} half of the store lacks {len(lacking)} of {len(ids)} chunks")
    passages = sum(c.level >= PASSAGE for c in chunks)
    counts = {"chunks": passages, "parents": len(ids) - passages}
    return Stored(ids, audience, counts | {"written": len(new) + len(changed)})


def _write(work: Work, store: Store, chunks: Sequence[ChunkRecord]) -> None:
    """Write chunks in batches of the settings' size, or of the size that suits the store."""
    fixed, tuned = work.context.settings.ingest.batch_size, store.batch_size
    for batch in batches(chunks, lambda: fixed or tuned.size):
        work.keeper.check()
        with tuned.measured(len(batch)):
            outcome = store.batch_upsert_chunks(
                work.version.collection, batch, tenant=work.version.tenant
            )
        _whole(outcome.failed)


def _made(
    work: Work, extracted: ExtractedText, created_at: float
) -> tuple[DocumentRecord, list[ChunkRecord]]:
    return records.made(
        work.version,
        extracted,
        work.read("enrich", ENRICHED),
        work.read("embed", VECTORS),
        created_at=created_at,
        options=work.options,
    )


def _hash(chunk: ChunkRecord) -> str:
    """Return the hash of the embedded text; empty for a parent, whose vector is a mean."""
    return text_hash(chunk.body) if chunk.level >= PASSAGE else ""


def _whole(failed: Mapping[str, str]) -> None:
    if failed:
        object_id, reason = next(iter(failed.items()))
        raise ObjectRefused(f"the store refused {len(failed)} objects, first {object_id}: {reason}")
