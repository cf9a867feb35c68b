"""Moving takes as much memory for many documents as for few."""

import gc
import hashlib
import json
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from memory_store import MemoryStore
from moving import COLLECTION, Site, chunks_of, schema, silent
from pydantic import TypeAdapter

from callslip.stores.blobs import original_name
from callslip.stores.ledger import STEPS, ChunkRow, Transcript
from callslip.stores.ledger.caches.vectors import text_hash
from callslip.stores.ledger.transcripts.values import StepRow, VersionRow
from callslip.stores.records import (
    BatchOutcome,
    ChunkRecord,
    CollectionSchema,
    DocumentRecord,
    StoredChunk,
)
from callslip.stores.transfer import export_collection, import_archive, migrate

WORDS = " ".join(f"word{n}" for n in range(20))
WARM, FEW, MANY = 5, 30, 66
"""More than two groups of documents, of which one is written while the next is read."""

SLACK = 12_000
"""Bytes by which one more document may raise the peak: ids on a page, garbage not collected yet. A
document itself takes 40,000 and more."""


class Endless(MemoryStore):
    """Holds every document that it was ever given, all of the same words, in no memory at all."""

    kind = "endless"

    def __init__(self) -> None:
        super().__init__()
        self.documents = 0

    def batch_upsert_documents(
        self, collection: str, documents: Sequence[DocumentRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        self.documents += len(documents)
        return BatchOutcome(tuple(d.document_id for d in documents))

    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        return BatchOutcome(tuple(c.chunk_id for c in chunks))

    def get_documents(
        self, collection: str, document_ids: Sequence[str], *, tenant: str = ""
    ) -> list[DocumentRecord]:
        return [DocumentRecord(i, "", "") for i in document_ids]

    def chunk_ids(
        self, collection: str, document_id: str | None = None, *, tenant: str = ""
    ) -> dict[str, set[str]]:
        assert document_id
        ids = {c.chunk_id for c in chunks_of(document_id, WORDS, {})}
        return {"vector": ids, "keyword": ids}

    def get_chunks(
        self, collection: str, chunk_ids: Sequence[str], **_: object
    ) -> list[StoredChunk]:  # type: ignore[override]
        document_id = chunk_ids[0].rpartition("-")[2]
        wanted = set(chunk_ids)
        return [
            StoredChunk(**c.__dict__)
            for c in chunks_of(document_id, WORDS, {})
            if c.chunk_id in wanted
        ]

    def count(self, *_: object, **__: object) -> int:
        return self.documents * len(WORDS.split())

    def vector_query(self, *_: object, **__: object) -> list[object]:  # type: ignore[override]
        return []

    def keyword_query(self, *_: object, **__: object) -> list[object]:  # type: ignore[override]
        return []


class OtherEndless(Endless):
    kind = "other"


def settle(site: Site, documents: int) -> None:
    """A collection of this many live documents."""
    made: CollectionSchema = schema()
    site.ledger.collections.create(made, store="endless", embedder="tiny", analyzer="1")
    store = site.stores["endless"]
    store.ensure_schema(made)
    original = bytes(30_000)
    digest = hashlib.sha256(original).hexdigest()
    version = VersionRow(1, "live", digest, len(original), "a.txt", "", {}, None, 0.0, 0.0)
    under = site.ledger.moves.take(COLLECTION, "endless", lease_seconds=600)
    steps = tuple(StepRow(step, 1, 0, 0.0, 0.0, None, {}) for step in STEPS)
    for n in range(documents):
        document_id = f"{n:032x}"
        chunks = {
            c.chunk_id: ChunkRow(1, text_hash(c.body)) for c in chunks_of(document_id, WORDS, {})
        }
        site.blobs.write(document_id, original_name(digest), original)
        site.ledger.transcripts.write(
            COLLECTION,
            Transcript(document_id, "", f"{n}", 1, 0.0, (version,), steps, chunks),
            under,
        )
        store.batch_upsert_documents(COLLECTION, [DocumentRecord(document_id, "", "")])
    site.ledger.moves.end(under)


def peak(work: Callable[[], object]) -> int:
    """The most bytes that Python and numpy held while this ran, over what they held before."""
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    work()
    _, most = tracemalloc.get_traced_memory()
    return most - before


@contextmanager
def traced() -> Iterator[None]:
    """Allocations are traced; the JSON parser's cache of 16,384 short strings is full before."""
    tracemalloc.start()
    row = {"first_version": 1, "text_hash": ""}
    output = {f"청크-{n:045}": {**row, "text_hash": f"청크-{n:045}"} for n in range(25_000)}
    TypeAdapter(dict[str, ChunkRow]).validate_json(json.dumps(output))
    del output
    try:
        yield
    finally:
        tracemalloc.stop()


@pytest.fixture(autouse=True)
def _garbage_is_collected_as_in_production() -> Iterator[None]:
    """As often as Python's default: garbage is part of a peak."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[Callable[[int], Site]]:
    """Installations with collections of any size."""
    made: list[Site] = []

    def make(documents: int) -> Site:
        folder = tmp_path / f"{len(made)}"
        folder.mkdir()
        made.append(Site(folder, {"endless": Endless(), "other": OtherEndless()}))
        if documents:
            settle(made[-1], documents)
        return made[-1]

    yield make
    for site in made:
        site.ledger.close()


@pytest.mark.long
def test_memory_does_not_grow_with_the_number_of_documents(
    sites: Callable[[int], Site], tmp_path: Path
) -> None:
    peaks: dict[str, list[int]] = {"export": [], "import": [], "migrate": []}
    both = [(sites(documents), sites(0)) for documents in (WARM, FEW, MANY)]
    with traced():
        for run, (site, empty) in enumerate(both):  # the first fills caches of bounded size
            path = tmp_path / f"{run}.tar"
            peaks["export"].append(
                peak(lambda p=site, f=path: export_collection(p.backend, COLLECTION, f, silent))
            )
            peaks["import"].append(
                peak(
                    lambda p=empty, f=path: import_archive(
                        p.backend, f, name=None, to=None, default="endless", progress=silent
                    )
                )
            )
            peaks["migrate"].append(
                peak(
                    lambda p=site: migrate(
                        p.backend, COLLECTION, "other", keep=False, grace=0, progress=silent
                    )
                )
            )
    for what, (_, few, many) in peaks.items():
        assert many - few < SLACK * (MANY - FEW), (what, few, many)
