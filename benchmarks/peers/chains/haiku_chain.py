"""haiku.rag in one process, over LanceDB.

It has no provider for a model of one's own, so that the function which makes its embedder is
replaced. Documents come with their chunks (`import_documents`), as its API has it for texts that
were converted elsewhere: its own converter would cut them in another way.
"""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from docling_core.types.doc.document import DoclingDocument
from docling_core.types.doc.labels import DocItemLabel
from haiku.rag.client import HaikuRAG
from haiku.rag.client.documents import DocumentImport
from haiku.rag.config.models import AppConfig
from haiku.rag.embeddings import EmbedderWrapper
from haiku.rag.store import engine
from haiku.rag.store.models.chunk import Chunk

from benchmarks.peers import protocol
from benchmarks.peers.chains.embedding import Embedding
from benchmarks.peers.protocol import TOP, Report, batches, distinct

T = TypeVar("T")


class LocalEmbedder(EmbedderWrapper):
    """The embedder, in threads beside the event loop."""

    def __init__(self, embedding: Embedding) -> None:
        super().__init__(None, embedding.dimension)
        self._embedding = embedding

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return await asyncio.to_thread(self._embedding.query, text)

    async def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of passages."""
        return await asyncio.to_thread(self._embedding.passages, texts)


class HaikuChain(protocol.Chain):
    """The chain: its client lives in an event loop of one thread."""

    def __init__(self, data: Path, models: Path) -> None:
        embedder = LocalEmbedder(Embedding(models))
        engine.get_embedder = lambda config=None: embedder
        config = AppConfig.model_validate(
            {
                "embeddings": {
                    "model": {
                        "provider": "sentence-transformers",
                        "name": "multilingual-e5-small",
                        "vector_dim": embedder.vector_dim,
                    },
                    "batch_size": protocol.BATCH,
                }
            }
        )
        data.mkdir(parents=True, exist_ok=True)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._client = HaikuRAG(data / "haiku.rag.lancedb", config=config, create=True)
        self._run(self._client.__aenter__())

    def close(self) -> None:
        """End the client."""
        self._run(self._client.__aexit__(None, None, None))

    def ingest(self, documents: Sequence[protocol.Document], report: Report) -> None:
        """Import each batch."""
        done = 0
        for batch in batches(documents):
            self._run(self._client.import_documents([_import(each) for each in batch]))
            done += len(batch)
            report(done, done)

    def change(self, documents: Sequence[protocol.Document]) -> None:
        """Import each document; one of a known address is replaced."""
        for document in documents:
            new = _import(document)
            self._run(self._client.import_document(new.docling_document, new.chunks, uri=new.uri))

    def delete(self, names: Sequence[str]) -> None:
        """Delete each document."""
        for document in self._run(self._client.list_documents()):
            if document.uri in names:
                self._run(self._client.delete_document(document.id))

    def search(self, query: str) -> list[str]:
        """Search by similarity and by words, as the client does by default."""
        results = self._run(self._client.search(query, limit=TOP))
        return distinct([each.document_uri for each in results])

    def stored(self) -> dict[str, int]:
        """Count the chunks."""
        names = {each.id: each.uri for each in self._run(self._client.list_documents())}
        rows = self._run(self._chunk_documents())
        return protocol.counted(names[row] for row in rows if row in names)

    async def _chunk_documents(self) -> list[str]:
        table = self._client.store.chunks_table
        rows = await table.query().select(["document_id"]).to_list()
        return [row["document_id"] for row in rows]

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _import(document: protocol.Document) -> Any:
    text = document.path.read_text(encoding="utf-8")
    converted = DoclingDocument(name=document.name)
    converted.add_text(DocItemLabel.TEXT, text)
    chunks = [Chunk(content=chunk) for chunk in document.cut(text)]
    return DocumentImport(converted, chunks, uri=document.name)


if __name__ == "__main__":
    protocol.serve(HaikuChain)
