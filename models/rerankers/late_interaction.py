"""Late interaction over the local embedder's own token vectors.

The score of a passage is the mean over the query's tokens of the cosine to the nearest token of
the passage (Khattab & Zaharia 2020, "ColBERT"). The embedder was not trained for this score;
docs/quality.md has measurements. The network reads a passage once, in about the time of its
embedding, and the cache stores its token vectors. So a query whose candidates are not in the cache
may miss its deadline, and the passages that it has read are in the cache for later queries.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from callslip.models.embedders.contract import Vectors
from callslip.models.embedders.local import E5Embedder
from callslip.models.rerankers.contract import Deadline, blanks_last


class TokenCache(Protocol):
    """Stores token vectors by model and text; it may drop any of them."""

    def get(self, model: str, texts: Sequence[str]) -> dict[str, Vectors]:
        """Return the stored vectors by text: shapes (tokens, dimension), unit rows.

        Texts without stored vectors are left out.
        """
        ...

    def put(self, model: str, vectors: Mapping[str, Vectors]) -> None:
        """Store token vectors by text."""
        ...


class MaxSimReranker:
    """A `Reranker` that uses the embedder's weights; late by at most one passage, 0.1 to 0.3 s."""

    def __init__(self, embedder: E5Embedder, cache: TokenCache | None) -> None:
        """Share the network of the process's embedder; without a cache, store no token vectors."""
        self._embedder = embedder
        self._cache = cache
        self.name = f"maxsim/{embedder.model}"

    def scores(self, query: str, passages: Sequence[str], deadline_seconds: float) -> list[float]:
        """Return scores according to the contract: 0 to 1, scaled from cosines of -1 to 1."""
        deadline = Deadline(deadline_seconds)

        def read(unique: list[str]) -> list[float]:
            known = self._read(unique, deadline)
            question = self._embedder.query_tokens(query)
            return [_maxsim(question, known[passage]) for passage in unique]

        return blanks_last(passages, read)

    def _read(self, passages: Sequence[str], deadline: Deadline) -> dict[str, Vectors]:
        texts = list(dict.fromkeys(passages))
        model = self._embedder.model
        known = self._cache.get(model, texts) if self._cache else {}
        new: dict[str, Vectors] = {}
        try:
            for text in texts:
                deadline.check(len(known) + len(new), len(texts))
                if text not in known:
                    new[text] = self._embedder.passage_tokens(text)
        finally:
            if self._cache:
                self._cache.put(model, new)
        return known | new


def _maxsim(question: Vectors, passage: Vectors) -> float:
    if not len(question) or not len(passage):
        return 0.0
    return (1 + float((question @ passage.T).max(axis=1).mean())) / 2
