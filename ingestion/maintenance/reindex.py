"""Makes the terms and vectors of a collection anew, by the present analyzer and embedder.

The passages stay as they were cut, with their ids, so that what refers to them stays valid. Each is
read from the store, analyzed and embedded; parents get the terms and the mean vector of their
passages, as in `ingestion.sections.hierarchy`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from callslip.errors import Conflict, SettingsError
from callslip.ingestion.chunks.title_context import contexts, line_of_stored
from callslip.ingestion.enrich.validity import in_force_since
from callslip.ingestion.sections.hierarchy import mean_of, terms_of
from callslip.models.e5.tokens import Tokenizer
from callslip.models.embedders.choice import further_embedder
from callslip.models.embedders.contract import Embedder
from callslip.models.text.analyzer import Analyzer
from callslip.models.text.kinds import of_kind
from callslip.stores.backend import Backend
from callslip.stores.levels import DOCUMENT, PASSAGE
from callslip.stores.records import (
    ChunkRecord,
    CollectionSchema,
    Vector,
    VectorSpec,
    table_header,
)
from callslip.stores.schemas import check_vector_name
from callslip.stores.transfer import Progress, Rebuild, Report, rebuild
from callslip.stores.transfer.bundle import DocumentBundle
from callslip.stores.transfer.reports import Phase

EMBED_BATCH = 16
"""Passages per embedding batch; between batches the lease is checked."""


@dataclass(frozen=True)
class Remaker:
    """Makes the terms and vectors of documents anew; `named` are the embedders of named vectors."""

    embedder: Embedder
    tokenizer: Tokenizer
    analyzer: Analyzer
    named: Mapping[str, Embedder] = field(default_factory=dict)

    def schema(self, present: CollectionSchema) -> CollectionSchema:
        """The collection's schema with the dimensions of the embedders, and new named vectors."""
        default = replace(present.default, dimension=self.embedder.dimension)
        named = dict(present.named)
        for name, embedder in self.named.items():
            like = named.get(name) or VectorSpec(1, default.metric, normalized=True)
            named[name] = replace(like, dimension=embedder.dimension, embedder=embedder.model)
        return replace(present, default=default, named=named)

    def remade(self, bundle: DocumentBundle, alive: Callable[[], None]) -> DocumentBundle:
        """Return the document with new terms and vectors; `alive` may raise between batches.

        Raises Conflict if a client provided its chunks.
        """
        provided = {name for chunk in bundle.chunks for name in chunk.named} - self.named.keys()
        if not bundle.transcript.live.size or provided:
            raise Conflict(
                f"a client provided the chunks of document {bundle.transcript.document_id}",
                hint="Only the client can make them anew: in a new collection.",
            )
        old = [chunk for chunk in bundle.chunks if chunk.level >= PASSAGE]
        line = line_of_stored(old[0].title, old[0].filename) if old else ""
        passages = self._passages(old, line, alive)
        by_id = {passage.chunk_id: passage for passage in passages}
        chunks = [by_id.get(c.chunk_id) or _parent(c, passages) for c in bundle.chunks]
        of_title = self.analyzer.analyze(line) if line else ""
        titled = (replace(c, terms=f"{c.terms} {of_title}".strip()) for c in chunks)
        return replace(bundle, chunks=tuple(titled))

    def _passages(
        self, old: Sequence[ChunkRecord], line: str, alive: Callable[[], None]
    ) -> list[ChunkRecord]:
        """The passages with new vectors, and new terms without those of the title."""
        texts = [table_header(p.properties) + p.body for p in old]
        default = self._vectors(self.embedder, texts, line, alive)
        named = {n: self._vectors(e, texts, line, alive) for n, e in self.named.items()}
        return [
            replace(
                passage,
                terms=self.analyzer.analyze(text),
                vector=default[at],
                named={name: vectors[at] for name, vectors in named.items()},
            )
            for at, (passage, text) in enumerate(zip(old, texts, strict=True))
        ]

    def _vectors(
        self, embedder: Embedder, texts: Sequence[str], line: str, alive: Callable[[], None]
    ) -> list[Vector]:
        measured = [(text, len(self.tokenizer.offsets(text))) for text in texts]
        lines = contexts(line, measured, self.tokenizer, embedder.max_tokens)
        read = [context + text for context, text in zip(lines, texts, strict=True)]
        vectors: list[Vector] = []
        for start in range(0, len(read), EMBED_BATCH):
            alive()
            vectors += list(embedder.passages(read[start : start + EMBED_BATCH]))
        return vectors


def embedders_of(
    schema: CollectionSchema, chosen: Mapping[str, str], further: Mapping[str, Embedder]
) -> dict[str, Embedder]:
    """The embedders for a collection's named vectors, by vector name.

    `further` are the embedders of the settings by name. `chosen` maps names of vectors, also of new
    ones, to names of embedders; other vectors keep their model. Raises SettingsError if the
    settings lack an embedder, InvalidRequest if a name is not valid.
    """
    for name in chosen:
        check_vector_name(name)
    by_model = {embedder.model: embedder for embedder in further.values()}
    made = {}
    for vector_name, model in schema.embedders.items():
        if vector_name in chosen:
            continue
        if model not in by_model:
            raise SettingsError(
                f"vector {vector_name!r} of collection {schema.name!r} is embedded by {model!r},"
                " which is none of the settings' embedders",
                hint=f"Add it to them, or choose another: --vector {vector_name}=EMBEDDER.",
            )
        made[vector_name] = by_model[model]
    return made | {name: further_embedder(further, embedder) for name, embedder in chosen.items()}


def reindex(
    backend: Backend,
    name: str,
    remaker: Remaker,
    *,
    grace: float,
    progress: Progress,
    phase: Phase = lambda _: None,
) -> Report:
    """Build a collection anew while it is searched, compare both forms, and switch.

    Errors and `grace` as in `stores.transfer.rebuild`; Conflict if a client provided chunks.
    """
    options = backend.ledger.collections.get(name).options
    remaker = replace(remaker, analyzer=of_kind(options.analyzer, remaker.analyzer))

    def remade(bundle: DocumentBundle, alive: Callable[[], None]) -> DocumentBundle:
        made = remaker.remade(bundle, alive)
        if options.valid_from_default == "none":
            return made
        created_at = bundle.transcript.created_at
        record, chunks = in_force_since(created_at, made.record, made.chunks)
        backend.ledger.collections.has_properties(name, record.properties)
        return replace(made, record=record, chunks=tuple(chunks))

    how = Rebuild(
        remaker.embedder.model,
        remaker.analyzer.version,
        remaker.schema,
        remade,
        remaker.analyzer.analyze,
    )
    return rebuild(backend, name, how, grace=grace, progress=progress, phase=phase)


def _parent(parent: ChunkRecord, passages: Sequence[ChunkRecord]) -> ChunkRecord:
    """A document or a section with the terms and vectors of its passages."""
    own = [p for p in passages if parent.level == DOCUMENT or p.parent_id == parent.chunk_id]
    named = {name: mean_of([p.named[name] for p in own]) for name in own[0].named}
    return replace(
        parent, terms=terms_of(own), vector=mean_of([p.vector for p in own]), named=named
    )
