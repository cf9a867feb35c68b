"""In every store a corrected chunk is another one, and all other chunks stay as they are."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from pipeline_parts import Tiny, doing, make_context, paragraphs, submit

from callslip.ingestion.corrections.corrected_version import Measures, correct
from callslip.ingestion.maintenance.removal import prune_documents
from callslip.stores.blobs import Blobs
from callslip.stores.chunk_stats import ChunkStats
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger
from callslip.stores.levels import PASSAGE
from callslip.stores.records import CollectionSchema, StoredChunk, VectorSpec

pytest_plugins = ["store_fixtures"]

WORDS = ("one", "two", "three", "four")


@pytest.mark.long
def test_other_chunks_keep_id_vector_and_memory(
    store: Store, names: Callable[[], str], tmp_path: Path
) -> None:
    schema = CollectionSchema(names(), VectorSpec(4))
    store.ensure_schema(schema)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(schema, store=store.kind, embedder="tiny", analyzer="")
        context = make_context(ledger, Blobs(str(tmp_path / "blobs")), store)
        embedder = context.embedder
        assert isinstance(embedder, Tiny)
        do = doing(context)
        item = submit(context, paragraphs(*WORDS), collection=schema.name)
        do(item.document_id, 1)
        before = passages(store, ledger, schema.name, item.document_id)
        assert [c.body.split()[0] for c in before] == [f"{word}0" for word in WORDS]
        stats = [ChunkStats(c.chunk_id, item.document_id, useful=3) for c in before]
        assert ledger.memory.take_in(schema.name, stats) == len(WORDS)
        given = len(embedder.given)

        two = before[1]
        texts = {two.chunk_id: two.body.replace("two3 ", "corrected ")}
        made = correct(
            context.backend, Measures(context.tokenizer, embedder), item.document_id, texts, 1
        )
        do(item.document_id, made.version)
        prune_documents(context.backend, [item.document_id])

        after = passages(store, ledger, schema.name, item.document_id)
        assert [c.body for c in after if c.ordinal == 1] == list(texts.values())
        assert embedder.given[given:] == list(texts.values())
        kept = [c.chunk_id for c in before if c is not two]
        assert [c.chunk_id for c in after if c.ordinal != 1] == kept
        for old, new in zip(before, after, strict=True):
            assert old.vector is not None
            assert new.vector is not None
            assert np.array_equal(old.vector, new.vector) == (old is not two)
            assert (old.section, old.ordinal) == (new.section, new.ordinal)
        memory = ledger.memory.of(schema.name, kept)
        assert {chunk_id: each.useful for chunk_id, each in memory.items()} == dict.fromkeys(
            kept, 3
        )
        assert not store.get_chunks(schema.name, [two.chunk_id])
        hits = [hit.chunk_id for hit in store.keyword_query(schema.name, "corrected", 9)]
        assert after[1].chunk_id in hits
        assert not set(hits) & set(kept)


def passages(store: Store, ledger: Ledger, name: str, document_id: str) -> list[StoredChunk]:
    """The visible passages in order of the text."""
    ids = sorted(ledger.chunks.live_ids(document_id))
    chunks = store.get_chunks(name, ids, include_vector=True)
    return sorted((c for c in chunks if c.level == PASSAGE), key=lambda c: c.ordinal)
