"""Late interaction over the local embedder's own token vectors.

The score of a passage is the mean over the question's tokens of the cosine to the nearest token of
the passage (Khattab & Zaharia 2020, "ColBERT"). The embedder was not trained for it; what it gives
is in docs/quality.md. The network reads a passage once, in about the time that embedding it took,
and its token vectors are kept: a question whose candidates nobody read before may run out of time,
and what it had read is there for the next.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from models.e5 import E5Embedder
from models.embedder import Vectors
from models.reranker import Deadline, blanks_last


class TokenCache(Protocol):
    """Keeps token vectors by model and text; it may forget any of them."""

    def get(self, model: str, texts: Sequence[str]) -> dict[str, Vectors]:
        """The known ones among these texts, by text: shapes (tokens, dimension), unit rows."""
        ...

    def put(self, model: str, vectors: Mapping[str, Vectors]) -> None:
        """Keep some."""
        ...


class MaxSimReranker:
    """A `Reranker` without weights of its own. It may be late by one passage, 0.1 to 0.3 s."""

    def __init__(self, embedder: E5Embedder, cache: TokenCache | None) -> None:
        """Shares the network with an embedder of the process; keeps nothing without a cache."""
        self._embedder = embedder
        self._cache = cache
        self.name = f"maxsim/{embedder.model}"

    def scores(self, query: str, passages: Sequence[str], deadline_seconds: float) -> list[float]:
        """As the contract says: 0 to 1, from cosines of -1 to 1."""
        deadline = Deadline(deadline_seconds)

        def read(kept: list[str]) -> list[float]:
            known = self._read(kept, deadline)
            asked = self._embedder.query_tokens(query)
            return [_maxsim(asked, known[passage]) for passage in kept]

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


def _maxsim(asked: Vectors, passage: Vectors) -> float:
    if not len(asked) or not len(passage):
        return 0.0
    return (1 + float((asked @ passage.T).max(axis=1).mean())) / 2
