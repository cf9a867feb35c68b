"""A collection with two embedders over every store: ingestion fills both vectors of every chunk."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_store import MemoryStore
from moving import silent
from pipeline_parts import doing, make_context, submit, with_backend

from callslip.config.sections.ranking import MemorySettings
from callslip.config.settings import ChunkingSettings, Settings
from callslip.errors import EmbedderDown, InvalidRequest, SettingsError, StoreCannot, VectorNotFound
from callslip.ingestion.context import StepContext
from callslip.ingestion.maintenance.reindex import Remaker, embedders_of, reindex
from callslip.ingestion.maintenance.repair import Repairs, repair
from callslip.models.embedders.contract import Embedder, Vectors
from callslip.models.entities import Recognizer
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.messages import SearchRequest, SearchResponse
from callslip.retrieval.run import search
from callslip.stores.audit.comparison import Finding, audit_scope, audit_scopes
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import Accepted, Ledger
from callslip.stores.levels import PASSAGE
from callslip.stores.records import ChunkRecord, CollectionSchema, StoredChunk, VectorSpec
from callslip.stores.transfer import export_collection, import_archive, migrate, migration

pytest_plugins = ["store_fixtures"]

ANIMALS = {"cat": 0, "feline": 0, "dog": 1, "hound": 1, "finch": 2, "bird": 2}
PLACES = {"garden": 0, "lawn": 0, "cellar": 1, "vault": 1, "roof": 2, "attic": 2, "shed": 3}
TEXT = "\n\n".join(
    (
        "the cat in the garden " + "calm " * 24,
        "the dog in the cellar " + "loud " * 24,
        "the finch on the roof " + "tiny " * 24,
        "the hound on the lawn " + "fast " * 24,
    )
)
"""Passages about an animal, which one embedder knows, in a place, which the other does."""

SETTINGS = Settings(
    chunking=ChunkingSettings(target_tokens=32, max_tokens=32, overlap_tokens=0),
    memory=MemorySettings(exploration="off"),
)


class Reading:
    """An embedder whose components are the meanings that it knows, and one for any text."""

    lexical_only, max_tokens = False, 1000

    def __init__(self, model: str, meanings: dict[str, int]) -> None:
        self.model, self._meanings = model, meanings
        self.dimension = max(meanings.values()) + 3
        self.texts: list[str] = []
        self.questions: list[str] = []
        self.down = False

    def passages(self, texts: Sequence[str]) -> Vectors:
        if self.down:
            raise EmbedderDown(f"{self.model} does not answer")
        self.texts += texts
        return np.stack([self._vector(text) for text in texts])

    def query(self, text: str) -> Vectors:
        self.questions.append(text)
        return self._vector(text)

    def _vector(self, text: str) -> Vectors:
        vector = np.zeros(self.dimension, np.float32)
        vector[-1], vector[-2] = 0.3, 0.1 * (zlib.crc32(text.encode()) % 97) / 97
        for word in text.split():
            if word in self._meanings:
                vector[self._meanings[word]] += 1
        return vector / np.float32(np.linalg.norm(vector))


@dataclass
class Library:
    """A collection with two embedders in a store, with a ledger and blobs of its own."""

    name: str
    store: Store
    steps: StepContext
    animals: Reading
    places: Reading

    def ingest(self, text: str = TEXT, **properties: Any) -> Accepted:
        item = submit(self.steps, text, collection=self.name, **properties)
        doing(self.steps)(item.document_id, item.version)
        return item

    def search(self, query: str, **more: Any) -> SearchResponse:
        embedder: Any = self.animals
        analyzer: Any = self.steps.analyzer
        resources = Resources(
            self.steps.backend, embedder, analyzer, Recognizer(), further=self.steps.further
        )
        request = {"collection": self.name, "query": query, "as_of": "any"} | more
        return search(resources, SearchRequest.model_validate(request))

    def best(self, query: str, vector_name: str | None = None, **more: Any) -> str:
        """The animal of the best hit."""
        hits = self.search(query, vector_name=vector_name, **more).hits
        return hits[0].text.split()[1]

    @property
    def home(self) -> Store:
        """The store, or the side of it, that has the collection."""
        return self.steps.store_of(self.steps.ledger.collections.get(self.name).store)

    def chunks(self, store: Store | None = None) -> list[StoredChunk]:
        at = store or self.home
        return at.get_chunks(self.name, at.find_ids(self.name), include_vector=True)

    def findings(self) -> tuple[Finding, ...]:
        (scope,) = audit_scopes(self.steps.ledger, {self.store.kind: self.store})
        return audit_scope(self.steps.ledger, scope).findings

    def repair(self) -> list[str]:
        use = Repairs(
            self.steps.ledger,
            {self.store.kind: self.store},
            self.steps.blobs,
            self.animals.model,
            doing(self.steps),
            [self.places.model],
        )
        return [repaired.left for repaired in repair(self.findings(), use)]

    def lose(self, count: int) -> list[str]:
        """Write some passages again without their named vector; their ids."""
        ids = [c.chunk_id for c in self.chunks() if c.level == PASSAGE][:count]
        stored = self.store.get_chunks(self.name, ids, include_vector=True, include_terms=True)
        bare = [ChunkRecord(**{**c.__dict__, "named": {}}) for c in stored]
        assert not self.store.batch_upsert_chunks(self.name, bare).failed
        return sorted(ids)


@pytest.fixture
def library(store: Store, names: Callable[[], str], tmp_path: Path) -> Iterator[Library]:
    name, animals, places = names(), Reading("animals", ANIMALS), Reading("places", PLACES)
    schema = CollectionSchema(
        name,
        VectorSpec(animals.dimension, normalized=True),
        {"where": VectorSpec(places.dimension, normalized=True, embedder="places")},
    )
    store.ensure_schema(schema)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(schema, store=store.kind, embedder="animals", analyzer="")
        further: Any = {"by-place": places}
        made = make_context(ledger, Blobs(str(tmp_path / "blobs")), store)
        made = with_backend(made, settings=SETTINGS)
        steps = replace(made, embedder=animals, further=further)  # type: ignore[arg-type]
        yield Library(name, store, steps, animals, places)


def alike(one: Any, other: Any) -> bool:
    return one is not None and other is not None and np.allclose(one, other, atol=1e-6)


@pytest.mark.long
def test_ingestion_fills_both_vectors_at_every_level(library: Library) -> None:
    item = library.ingest()
    assert library.steps.ledger.documents.get(item.document_id).state == "live"
    ids = library.store.chunk_ids(library.name)
    assert ids["vector"] == ids["keyword"] == ids["vector:where"]
    chunks = library.chunks()
    passages = [c for c in chunks if c.level == PASSAGE]
    assert len(passages) == 4
    for chunk in passages:
        assert alike(chunk.vector, library.animals._vector(chunk.body))
        assert alike(chunk.named["where"], library.places._vector(chunk.body))
    total = np.sum([c.named["where"] for c in passages], axis=0)
    for parent in (c for c in chunks if c.level < PASSAGE):
        assert alike(parent.named["where"], total / np.linalg.norm(total))


@pytest.mark.long
@pytest.mark.parametrize(
    "how", [{"alpha": 1}, {}, {"fusion": "rrf"}, {"fusion": "weighted"}, {"fusion": "native"}]
)
def test_a_search_compares_the_vector_that_it_names(library: Library, how: dict[str, Any]) -> None:
    library.ingest()
    try:
        assert library.best("feline", **how) == "cat"
    except StoreCannot as error:
        pytest.skip(error.detail)
    assert library.places.questions == []
    assert library.best("vault", "where", **how) == "dog"
    assert library.best("attic", "where", **how) == "finch"
    assert library.animals.questions == ["feline"]
    assert library.places.questions == ["vault", "attic"]


def test_words_and_a_named_vector_are_searched_together(library: Library) -> None:
    library.ingest()
    hits = library.search("vault loud", vector_name="where", alpha=0.5).hits
    assert hits[0].legs.vector
    assert hits[0].legs.keyword
    assert hits[0].text.startswith("the dog")
    filtered = {"vector_name": "where", "having_all": {"document_id": "x"}}
    assert library.search("vault", **filtered).hits == []


def test_both_vectors_are_given_by_name(library: Library) -> None:
    library.ingest()
    (hit,) = library.search("vault", vector_name="where", include_vector=True, top=1).hits
    assert hit.vectors is not None
    assert hit.vectors.keys() == {"default", "where"}
    assert hit.vector == hit.vectors["where"]
    assert alike(hit.vectors["default"], library.animals._vector(hit.text))
    (plain,) = library.search("feline", include_vector=True, top=1).hits
    assert plain.vectors
    assert plain.vector == plain.vectors["default"]
    assert library.search("vault", top=1).hits[0].vectors is None


def test_an_unknown_vector_is_named_with_the_known_ones(library: Library) -> None:
    library.ingest()
    with pytest.raises(VectorNotFound, match="no vector 'when'; named ones: where"):
        library.search("vault", vector_name="when")


def test_a_question_needs_the_embedder_of_its_vector(library: Library) -> None:
    library.ingest()
    library.steps = replace(library.steps, further={})
    with pytest.raises(InvalidRequest, match="embedded with 'places'"):
        library.search("vault", vector_name="where")
    assert library.best("feline") == "cat"


def test_the_step_waits_for_an_embedder_and_keeps_what_the_other_made(library: Library) -> None:
    library.places.down = True
    item = library.ingest()
    record = library.steps.ledger.documents.get(item.document_id)
    embed = next(s for s in record.steps if s.step == "embed")
    assert (record.live_version, embed.state, embed.attempts) == (None, "pending", 1)
    assert embed.failure
    assert "places" in embed.failure.detail
    assert library.store.chunk_ids(library.name)["vector"] == set()
    library.places.down = False
    again = library.ingest(name="b.txt")
    assert library.steps.ledger.documents.get(again.document_id).state == "live"
    assert (len(library.animals.texts), len(library.places.texts)) == (4, 4)


@pytest.mark.long
def test_an_edit_embeds_only_what_changed_and_a_property_nothing(library: Library) -> None:
    library.ingest()
    assert (len(library.animals.texts), len(library.places.texts)) == (4, 4)
    library.ingest(TEXT.replace("loud loud", "loud noisy", 1))
    assert (len(library.animals.texts), len(library.places.texts)) == (5, 5)
    library.ingest(TEXT.replace("loud loud", "loud noisy", 1), year=2024)
    assert (len(library.animals.texts), len(library.places.texts)) == (5, 5)
    live = [c for c in library.chunks() if c.properties.get("year") == 2024]
    assert len(live) == 6
    assert all(c.named.keys() == {"where"} for c in live)
    assert library.findings() == ()


@pytest.mark.long
def test_the_audit_finds_a_missing_named_vector_and_repairs_it(
    library: Library, tmp_path: Path
) -> None:
    item = library.ingest()
    assert library.findings() == ()
    lost = library.lose(2)
    (finding,) = library.findings()
    assert (finding.kind, finding.half) == ("missing", "vector:where")
    assert sorted(finding.ids) == lost
    assert library.repair() == [""]
    assert library.findings() == ()
    library.lose(1)
    artifact = library.steps.ledger.documents.artifact(item.document_id, item.version, "embed")
    assert artifact is not None
    next(tmp_path.rglob(artifact)).unlink()
    assert library.repair() == [""]
    assert library.findings() == ()
    assert library.best("vault", "where", alpha=1) == "dog"


@pytest.mark.long
def test_an_archive_has_both_vectors_and_who_makes_them(
    library: Library, names: Callable[[], str], tmp_path: Path
) -> None:
    library.ingest()
    path, other = tmp_path / "archive.tar", names()
    export_collection(library.steps.backend, library.name, path, silent)
    with closing(Ledger(f"sqlite:///{tmp_path / 'other.db'}")) as ledger:
        ledger.create()
        steps = with_backend(library.steps, ledger=ledger, blobs=Blobs(str(tmp_path / "other")))
        kind = library.store.kind
        import_archive(steps.backend, path, name=other, to=kind, default=kind, progress=silent)
        there = Library(other, library.store, steps, library.animals, library.places)
        assert ledger.collections.get(other).models == {"": "animals", "where": "places"}
        assert there.best("vault", "where", alpha=1) == "dog"
        assert there.findings() == ()
        there.ingest("the bird in the shed " + "new " * 24, name="b.txt")
        assert there.best("shed", "where", alpha=1) == "bird"


def two_stores(library: Library, monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    monkeypatch.setattr(migration, "SETTLE_SECONDS", 0.5)
    other = MemoryStore()
    other.kind = "other"  # type: ignore[misc]

    def store_of(kind: str) -> Store:
        from callslip.stores.sides import kind_of, side_of

        return side_of(other if kind_of(kind) == "other" else library.store, kind)

    library.steps = with_backend(library.steps, store_of=store_of)
    return other


@pytest.mark.long
def test_a_move_takes_both_vectors_along(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    library.ingest()
    before = {c.chunk_id: c for c in library.chunks()}
    two_stores(library, monkeypatch)
    report = migrate(
        library.steps.backend, library.name, "other", keep=False, grace=0, progress=silent
    )
    assert "vector:where" in report.probes
    after = library.chunks()
    assert len(after) == len(before)
    assert all(alike(c.named["where"], before[c.chunk_id].named["where"]) for c in after)
    assert library.best("vault", "where", alpha=1) == "dog"


@pytest.mark.long
def test_a_collection_gets_another_vector_when_it_is_built_anew(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.ingest()
    two_stores(library, monkeypatch)
    schema = library.steps.ledger.collections.get(library.name).schema
    more: Any = Reading("more", {"calm": 0, "loud": 1, "tiny": 2, "fast": 3})
    further: dict[str, Embedder] = {**library.steps.further, "how": more}
    with pytest.raises(SettingsError, match=r"'where' .* by 'places'"):
        embedders_of(schema, {"mood": "how"}, {"how": more})
    with pytest.raises(InvalidRequest, match="no embedder 'hew'; there are: by-place, how"):
        embedders_of(schema, {"mood": "hew"}, further)
    with pytest.raises(InvalidRequest, match="'default' is the unnamed one"):
        embedders_of(schema, {"default": "how"}, further)
    named = embedders_of(schema, {"mood": "how"}, further)
    analyzer: Any = library.steps.analyzer
    analyzer.version = ""
    remaker = Remaker(library.steps.embedder, library.steps.tokenizer, analyzer, named)
    reindex(library.steps.backend, library.name, remaker, grace=0, progress=silent)
    library.steps = replace(library.steps, further=further)
    models = library.steps.ledger.collections.get(library.name).models
    assert models == {"": "animals", "where": "places", "mood": "more"}
    assert library.best("tiny", "mood", alpha=1) == "finch"
    assert library.best("vault", "where", alpha=1) == "dog"
    assert library.best("feline", alpha=1) == "cat"
    ids = library.home.chunk_ids(library.name)
    assert ids["vector"] == ids["vector:where"] == ids["vector:mood"]
    library.home.drop_collection(library.name)
