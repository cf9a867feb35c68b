"""Collections to be moved, with everything that a document can have."""

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from ledger_moves import claim, submission
from memory_store import MemoryStore
from sqlalchemy import update

from callslip.config.settings import Settings
from callslip.stores.backend import Backend
from callslip.stores.blobs import Blobs, original_name
from callslip.stores.contract import Store
from callslip.stores.ledger import STEPS, Accepted, Claim, Ledger, PageTable, Step
from callslip.stores.ledger.base import schema as ledger_schema
from callslip.stores.ledger.caches.vectors import text_hash
from callslip.stores.records import (
    ChunkRecord,
    CollectionSchema,
    DocumentRecord,
    Vector,
    VectorSpec,
)

DIMENSION = 8
COLLECTION = "papers"
PROPERTIES: dict[str, Any] = {
    "text": "휴가",
    "whole": 3,
    "number": 2.5,
    "flag": True,
    "date": "2024-02-29",
    "texts": ["a", "나"],
    "numbers": [1.5, 2.0],
    "flags": [True, False],
    "이름 ☃": "x",
}


class OtherStore(MemoryStore):
    """Another kind of the same."""

    kind = "other"


def schema(*, tenants: bool = False, name: str = COLLECTION) -> CollectionSchema:
    """Vectors of two names."""
    return CollectionSchema(
        name, VectorSpec(DIMENSION), {"title": VectorSpec(4, "l2-squared")}, tenants=tenants
    )


@dataclass
class Site:
    """An installation: a ledger, blobs and two kinds of stores."""

    folder: Path
    stores: Mapping[str, Store] = field(
        default_factory=lambda: {"memory": MemoryStore(), "other": OtherStore()}
    )

    def __post_init__(self) -> None:
        self.ledger = Ledger(f"sqlite:///{self.folder / 'ledger.db'}")
        self.ledger.create()
        self.blobs = Blobs(str(self.folder / "blobs"))
        self.backend = Backend(Settings(), self.ledger, self.blobs, self.stores.__getitem__)

    def make(self, *, tenants: bool = False, store: str = "memory") -> None:
        """Make the collection, as the server does."""
        made = schema(tenants=tenants)
        self.ledger.collections.create(made, store=store, embedder="tiny", analyzer="1")
        self.stores[store].ensure_schema(made)

    def publish(self, name: str, text: str, *, tenant: str = "", **more: Any) -> Accepted:
        """Submit a document, one chunk a word, and take it to live; a word alone is no term."""
        item = self.submit(name, text, tenant=tenant, **more)
        for step in STEPS[:-1]:
            self.do(item, step)
        assert self.upsert(item, text, tenant=tenant, **more), "it is not to be upserted now"
        return item

    def submit(self, name: str, text: str, *, tenant: str = "", **more: Any) -> Accepted:
        """Do what the server does."""
        given = replace(submission(text, name), properties={**PROPERTIES, **more})
        found = self.ledger.documents.id_of(COLLECTION, name, tenant=tenant)
        new_id = found or uuid.uuid4().hex
        self.blobs.write(new_id, original_name(given.sha256), text.encode())
        return self.ledger.documents.submit(COLLECTION, given, new_id, tenant=tenant)

    def do(self, item: Accepted, step: Step) -> None:
        """Do one of the steps that touch no store."""
        found = claim(self.ledger, item, step)
        if isinstance(found, Claim):
            artifact = f"{step}-{item.version}"
            self.blobs.write(item.document_id, artifact, artifact.encode())
            self.ledger.leases.finish(found, artifact, {"n": 1})

    def upsert(self, item: Accepted, text: str, *, tenant: str = "", **more: Any) -> bool:
        """The last step; False where it cannot be claimed."""
        found = claim(self.ledger, item, "upsert")
        if not isinstance(found, Claim):
            return False
        store = self.stores[self.ledger.collections.get(COLLECTION).store]
        chunks = chunks_of(item.document_id, text, {**PROPERTIES, **more})
        hashes = {c.chunk_id: text_hash(c.body) for c in chunks}
        self.ledger.chunks.expect(found, hashes, pages=PageTable("page", (0, 5), ("iv", "")))
        self.ledger.collections.has_properties(COLLECTION, chunks[0].properties if chunks else ())
        if tenant:
            store.ensure_tenant(COLLECTION, tenant)
        record = DocumentRecord(item.document_id, "제목", "a.txt", {**PROPERTIES, **more})
        assert not store.batch_upsert_documents(COLLECTION, [record], tenant=tenant).failed
        assert not store.batch_upsert_chunks(COLLECTION, chunks, tenant=tenant).failed
        self.ledger.leases.go_live(found, [c.chunk_id for c in chunks], {"chunks": len(chunks)})
        return True

    def state(self, store: str | None = None) -> dict[str, Any]:
        """All that a search can see, by document: ledger, store and blobs."""
        found = {}
        kind = store or self.ledger.collections.get(COLLECTION).store
        for document_id, _ in self.ledger.transcripts.ids(COLLECTION, limit=10_000):
            snapshot = self.ledger.transcripts.read(document_id)
            assert snapshot
            transcript = snapshot.transcript
            held = self.stores[kind].get_chunks(
                COLLECTION,
                sorted(transcript.chunks),
                tenant=transcript.tenant,
                include_vector=True,
                include_terms=True,
            )
            records = self.stores[kind].get_documents(
                COLLECTION, [document_id], tenant=transcript.tenant
            )
            text = self.blobs.read(document_id, original_name(transcript.live.sha256))
            found[document_id] = (transcript, [plain(c) for c in held], records, text)
        return found

    def held(self, store: str, *, tenant: str = "") -> set[str]:
        """Ids of all chunks that a store holds."""
        return set().union(*self.stores[store].chunk_ids(COLLECTION, tenant=tenant).values())


def plain(chunk: Any) -> dict[str, Any]:
    """A chunk as values that can be compared."""
    named = {name: vector.tolist() for name, vector in chunk.named.items()}
    return {**chunk.__dict__, "vector": chunk.vector.tolist(), "named": named}


def vector_of(text: str, dimension: int = DIMENSION) -> Vector:
    """A direction that belongs to a text, as an array of its own."""
    return _direction(text, dimension).copy()


@cache
def _direction(text: str, dimension: int) -> Vector:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return np.random.default_rng(seed).normal(size=dimension).astype(np.float32)


def chunks_of(document_id: str, text: str, properties: Mapping[str, Any]) -> list[ChunkRecord]:
    """One chunk a word: every third without a second vector, those of one letter without terms."""
    chunks = []
    for n, word in enumerate(text.split()):
        chunk_id = f"청크-{word}-{document_id}"[:64]
        chunks.append(
            ChunkRecord(
                chunk_id=chunk_id,
                document_id=document_id,
                body=f"{word} ☃\n",
                terms="" if len(word) == 1 else f"{word} every {word}",
                vector=vector_of(word),
                named={} if n % 3 == 2 else {"title": vector_of(word, 4)},
                parent_id=chunks[0].chunk_id if chunks else "",
                section=f"1.{n}",
                heading="Überschrift",
                title="제목",
                filename="a.txt",
                lang="ko",
                level=min(n, 1),
                ordinal=n,
                start=n,
                end=n + 1,
                properties=dict(properties),
                created_at="2024-03-01T09:00:00.000001+00:00",
                updated_at="2024-04-01T09:00:00.000001+00:00",
                pretty=f"**{word}**" if n else "",
                anchor=word,
            )
        )
    return chunks


def fill(site: Site, *, tenants: bool = False) -> None:
    """A collection with several documents, of one of which there are three versions."""
    site.make(tenants=tenants)
    names = ["서울시 A/1", "서울시 a/1"] if tenants else [""]
    for tenant in names:
        site.publish("one", "alpha beta gamma delta", tenant=tenant)
        site.publish("two", "x 휴가 출산", tenant=tenant, year=2024)
        site.publish("versions", "first kept", tenant=tenant)
        site.publish("versions", "kept second", tenant=tenant)
        site.publish("versions", "kept third more", tenant=tenant)
        site.publish("nothing in it", "", tenant=tenant)
    site.submit("not live", "words", tenant=names[0])
    if tenants:
        site.ledger.tenants.create(COLLECTION, "nobody")
        site.stores["memory"].ensure_tenant(COLLECTION, "nobody")


def run_out(site: Site) -> None:
    """Let the lease of a dead mover run out."""
    with site.ledger._database.writing() as connection:
        connection.execute(update(ledger_schema.moves).values(lease_until=0.0))


def silent(_total: int, _chunks: int) -> None:
    """Nobody watches."""


class Killed(BaseException):
    """As SIGKILL: nothing that the process does afterwards reaches anything."""


NEVER = 10**9
"""More calls than a process makes."""


class Fate:
    """When a process dies: at its n-th call, and ever after."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def meet(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed


class Mortal:
    """Something of which any call may be the one that the process does not come to."""

    def __init__(self, real: Any, fate: Fate) -> None:
        self._real, self._fate = real, fate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if not callable(found):
            simple = isinstance(found, str | int | float | frozenset)
            return found if simple else Mortal(found, self._fate)

        def call(*given: Any, **more: Any) -> Any:
            self._fate.meet()
            return found(*given, **more)

        return call


def mortal(site: Site, fate: Fate) -> Backend:
    """The place as a process sees it that will be killed."""
    parts: Any = [Mortal(site.ledger, fate), Mortal(site.blobs, fate)]
    return Backend(Settings(), *parts, lambda kind: cast("Store", Mortal(site.stores[kind], fate)))
