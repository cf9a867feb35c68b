"""The step embed: the vectors of the chunks."""

from collections.abc import Mapping, Sequence

import numpy as np

from callslip.errors import (
    EmbedderDown,
)
from callslip.ingestion.artifacts import (
    CHUNKS,
    EXTRACTED,
    VECTORS,
)
from callslip.ingestion.chunks.title_context import lacks, line_of
from callslip.ingestion.steps.work import Work, title_of
from callslip.ingestion.values import Chunk
from callslip.models.embedders.contract import Embedder
from callslip.stores.ledger.caches.vectors import text_hash
from callslip.stores.records import (
    Vector,
)

EMBED_BATCH = 16
"""Chunks per embedding batch. After each batch the step checks its lease and caches the vectors."""


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
    line = line_of(title_of(work))
    room = embedder.max_tokens - len(work.context.tokenizer.offsets(line)) - 1
    return [
        line if c.tokens <= room and lacks(t, line) else ""
        for c, t in zip(chunks, texts, strict=True)
    ]


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
