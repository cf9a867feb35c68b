"""The step embed: the vectors of the chunks."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from callslip.errors import (
    EmbedderDown,
)
from callslip.ingestion.artifacts import (
    CHUNKS,
    EXTRACTED,
    VECTORS,
)
from callslip.ingestion.chunks.title_context import contexts, line_of
from callslip.ingestion.steps.work import Work, title_of
from callslip.ingestion.values import Chunk
from callslip.models.embedders.contract import Embedder
from callslip.stores.ledger.caches.vectors import Key, text_hash
from callslip.stores.ledger.documents.chunks import Expected
from callslip.stores.records import (
    Vector,
)

EMBED_BATCH = 16
"""Chunks per embedding batch. After each batch the step checks its lease and caches the vectors."""


@dataclass(frozen=True)
class _Passages:
    """The passages of a version: their texts, and the hashes of these."""

    work: Work
    chunks: Sequence[Chunk]
    texts: Sequence[str]
    hashes: Sequence[str]

    @property
    def expected(self) -> Expected:
        """The chunks as the ledger is to know them before there is a vector.

        A deletion then also finds the vectors.
        """
        ids = [chunk.chunk_id for chunk in self.chunks]
        spans = {c.chunk_id: (c.start, c.end) for c in self.chunks}
        return Expected(self.work.claim, dict(zip(ids, self.hashes, strict=True)), spans)


def embed_chunks(work: Work) -> dict[str, Vector]:
    """Return one vector per chunk for each name of vectors, shape (chunks, dimension).

    Vectors of unchanged texts come from the cache or from the previous version. The step fails as a
    whole if one of the embedders does not answer; what the others made is in the cache then.
    """
    its = _passages(work)
    work.context.ledger.chunks.expect(*its.expected)
    return _embedded([its], _previous_vectors(work))[0]


def embed_together(works: Sequence[Work]) -> dict[int, dict[str, Vector]]:
    """Embed the chunks of new documents of one collection in common; return them by number.

    What fails is left out: `embed_chunks` repeats the step for each alone, and raises the error of
    the one. Raises EmbedderDown if an embedder does not answer.
    """
    read: dict[int, _Passages] = {}
    for number, work in enumerate(works):
        with suppress(Exception):
            read[number] = _passages(work)
    if not read:
        return {}
    failed = works[0].context.ledger.chunks.expect_all([its.expected for its in read.values()])
    sound = {n: its for (n, its), error in zip(read.items(), failed, strict=True) if not error}
    return dict(zip(sound, _embedded(list(sound.values()), {}), strict=True)) if sound else {}


def _passages(work: Work) -> _Passages:
    _check_embedders(work)
    text = work.read("extract", EXTRACTED).text
    chunks = work.read("chunk", CHUNKS)
    texts = [c.read(text) for c in chunks]
    return _Passages(work, chunks, texts, [text_hash(t) for t in texts])


def _embedded(
    every: Sequence[_Passages], previous: Mapping[str, Mapping[str, Vector]]
) -> list[dict[str, Vector]]:
    """Return the vectors of each version by name.

    `previous` has those of the previous version by name and chunk, if there is one version.
    """
    for its in every:
        its.work.counts["embedded"] = 0
    made: list[dict[str, Vector]] = [{} for _ in every]
    for name in every[0].work.models:
        vectors = _vectors(every, every[0].work.embedder(name), previous.get(name, {}))
        for by_name, rows in zip(made, vectors, strict=True):
            by_name[name] = rows
    return made


def _vectors(
    every: Sequence[_Passages], embedder: Embedder, previous: Mapping[str, Vector]
) -> list[Vector]:
    """Return the vectors of one embedder for each version.

    A vector comes from the cache, from the previous version, or from the embedder. Its key has the
    hash of the text without the title line, so that a deletion finds all vectors of a text.
    """
    keys: list[list[Key]] = []
    texts: dict[Key, str] = {}
    owners: dict[Key, _Passages] = {}
    before: dict[Key, Vector] = {}
    for its in every:
        contexts = _contexts(its.work, embedder, its.chunks, its.texts)
        keys.append([(_maker(embedder, c), h) for c, h in zip(contexts, its.hashes, strict=True)])
        for key, context, text, chunk in zip(
            keys[-1], contexts, its.texts, its.chunks, strict=True
        ):
            texts[key] = context + text
            owners[key] = its
            if chunk.chunk_id in previous:
                before[key] = previous[chunk.chunk_id]
    cache = every[0].work.context.ledger.vectors
    known = before | cache.get(texts)
    missing = sorted(texts.keys() - known.keys(), key=lambda key: (len(texts[key]), key))
    for start in range(0, len(missing), EMBED_BATCH):
        batch = missing[start : start + EMBED_BATCH]
        vectors = embedder.passages([texts[key] for key in batch])
        new = dict(zip(batch, vectors, strict=True))
        for its in every:
            its.work.lease.check()
        cache.put(new)
        known |= new
    for key in missing:
        owners[key].work.counts["embedded"] += 1
    return [np.stack([known[key] for key in its]) for its in keys]


def _maker(embedder: Embedder, context: str) -> str:
    """The name of the model in the cache for texts with a title line."""
    return f"{embedder.model}+{text_hash(context)[:16]}" if context else embedder.model


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
    """Return the title line that is embedded with each passage, or ""."""
    lengths = (chunk.tokens for chunk in chunks)
    passages = zip(texts, lengths, strict=True)
    line = line_of(title_of(work))
    return contexts(line, passages, work.context.tokenizer, embedder.max_tokens)


def _previous_vectors(work: Work) -> dict[str, dict[str, Vector]]:
    """Return the previous version's vectors by vector name and chunk id.

    They are needed because the cache is bounded and can be disabled.
    """
    chunks, vectors = work.previous("chunk", CHUNKS), work.previous("embed", VECTORS)
    if chunks is None or vectors is None or len(chunks) != len(vectors[""]):
        return {}
    ids = [c.chunk_id for c in chunks]
    return {name: dict(zip(ids, rows, strict=True)) for name, rows in vectors.items()}
