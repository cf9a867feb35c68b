"""Makes the terms and vectors of a collection anew, by the present analyzer and embedder.

The passages stay as they were cut, with their ids, so that what refers to them stays valid. Each is
read from the store, analyzed and embedded; parents get the terms and the mean vector of their
passages, as in `ingestion.sections.hierarchy`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from callslip.errors import Conflict, SettingsError
from callslip.ingestion.chunks.title_context import lacks, line_of
from callslip.ingestion.enrich.validity import in_force_since
from callslip.ingestion.sections.hierarchy import LONGEST, mean_of
from callslip.models.e5.tokens import Tokenizer
from callslip.models.embedders.choice import further_embedder
from callslip.models.embedders.contract import Embedder
from callslip.models.text.analyzer import Analyzer
from callslip.models.text.kinds import of_kind
from callslip.stores.backend import Backend
from callslip.stores.levels import DOCUMENT, PASSAGE
from callslip.stores.records import (
    TABLE_HEADER,
    ChunkRecord,
    CollectionSchema,
    Vector,
    VectorSpec,
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
        passages = [chunk for chunk in bundle.chunks if chunk.level >= PASSAGE]
        title = _title_of(passages)
        of_title = self.analyzer.analyze(title) if title else ""
        embedders = {"": self.embedder, **self.named}
        vectors = {n: self._vectors(e, passages, title, alive) for n, e in embedders.items()}
        terms = [self.analyzer.analyze(_content(passage)) for passage in passages]
        of_passage = {p.chunk_id: n for n, p in enumerate(passages)}
        chunks = []
        for chunk in bundle.chunks:
            if (at := of_passage.get(chunk.chunk_id)) is not None:
                its_terms, its_vectors = terms[at], {n: made[at] for n, made in vectors.items()}
            else:
                below = [
                    n
                    for n, passage in enumerate(passages)
                    if chunk.level == DOCUMENT or passage.parent_id == chunk.chunk_id
                ]
                near = [n for n in below if passages[n].end - chunk.start <= LONGEST]
                members = near if below[:1] == near[:1] else [*below[:1], *near]
                its_terms = " ".join(terms[n] for n in members if terms[n])
                its_vectors = {
                    name: mean_of([made[n] for n in below]) for name, made in vectors.items()
                }
            its_terms = f"{its_terms} {of_title}".strip()
            vector = its_vectors.pop("")
            chunks.append(replace(chunk, terms=its_terms, vector=vector, named=its_vectors))
        return replace(bundle, chunks=tuple(chunks))

    def _vectors(
        self,
        embedder: Embedder,
        passages: Sequence[ChunkRecord],
        title: str,
        alive: Callable[[], None],
    ) -> list[Vector]:
        room = embedder.max_tokens - len(self.tokenizer.offsets(title)) - 1
        texts = []
        for passage in passages:
            content = _content(passage)
            fits = len(self.tokenizer.offsets(content)) <= room
            texts.append(title + content if fits and lacks(content, title) else content)
        vectors: list[Vector] = []
        for start in range(0, len(texts), EMBED_BATCH):
            alive()
            vectors += list(embedder.passages(texts[start : start + EMBED_BATCH]))
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


def _content(passage: ChunkRecord) -> str:
    """The text that is analyzed and embedded: the body, below the header of its table."""
    header = passage.properties.get(TABLE_HEADER)
    return f"{header}\n{passage.body}" if header else passage.body


def _title_of(passages: Sequence[ChunkRecord]) -> str:
    """The title line; empty if the title is only the file's name."""
    if not passages or passages[0].title == passages[0].filename:
        return ""
    return line_of(passages[0].title)
