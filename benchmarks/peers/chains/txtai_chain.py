"""txtai in one process: Faiss and SQLite, written to a folder at the end of each change."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from txtai import Embeddings

from benchmarks.peers import protocol
from benchmarks.peers.chains.embedding import Embedding, Vectorizer
from benchmarks.peers.protocol import TOP, Report, batches, distinct

MOST = 1_000_000
"""A limit for queries of all chunks: without one txtai returns three rows."""


class TxtaiChain(protocol.Chain):
    """The chain."""

    def __init__(self, data: Path, models: Path) -> None:
        vectorizer, self._folder = Vectorizer(Embedding(models)), str(data / "index")

        def transform(texts: Sequence[str]) -> Any:
            return vectorizer.transform(texts)

        self._embeddings = Embeddings(
            method="external",
            transform=transform,
            instructions=Vectorizer.PREFIXES,
            content=True,
        )
        self._lock = threading.Lock()  # as txtai's own server has around a search
        if Path(self._folder).exists():
            self._embeddings.load(self._folder, config={"transform": transform})

    def ingest(self, documents: Sequence[protocol.Document], report: Report) -> None:
        """Upsert each batch, and save once: a save writes everything."""
        done = 0
        for batch in batches(documents):
            self._embeddings.upsert(
                (f"{each.name}#{number}", text, each.name)
                for each in batch
                for number, text in enumerate(each.cut(each.path.read_text(encoding="utf-8")))
            )
            done += len(batch)
            report(done, done)
        self._embeddings.save(self._folder)

    def change(self, documents: Sequence[protocol.Document]) -> None:
        """Upsert: chunks have ids of their place in the document."""
        self.ingest(documents, lambda *_: None)

    def delete(self, names: Sequence[str]) -> None:
        """Delete the ids of all chunks of the documents."""
        ids = [id_ for name in names for id_ in self._ids(name)]
        self._embeddings.delete(ids)
        self._embeddings.save(self._folder)

    def search(self, query: str) -> list[str]:
        """Search by similarity."""
        with self._lock:
            results = self._embeddings.search(query, TOP)
        return distinct([each["id"].partition("#")[0] for each in results])

    def stored(self) -> dict[str, int]:
        """Count the chunks."""
        if not self._embeddings.count():
            return {}
        rows = self._embeddings.search("select id, tags from txtai", MOST)
        return protocol.counted(row["tags"] for row in rows)

    def _ids(self, name: str) -> list[str]:
        sql = "select id from txtai where tags = :name"
        return [row["id"] for row in self._embeddings.search(sql, MOST, parameters={"name": name})]


if __name__ == "__main__":
    protocol.serve(TxtaiChain)
