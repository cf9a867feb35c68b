"""A collection is built anew beside its present form, in use and after a kill."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ledger_moves import taken
from moving import COLLECTION, Fate, Killed, Site, mortal, run_out, silent
from reindexing import NewAnalyzer, NewEmbedder, Words, plain_chunks

from callslip.errors import Conflict, ObjectRefused
from callslip.ingestion.maintenance.reindex import Remaker, reindex
from callslip.ingestion.maintenance.removal import remove_documents
from callslip.stores.backend import Backend
from callslip.stores.ledger import STEPS, Step
from callslip.stores.ledger.documents.failures import Which
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.stores.sides import both_sides, other_side
from callslip.stores.transfer import Report, migrate, migration

NEW = "memory:2"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An installation whose chunks have no vectors of other names."""
    monkeypatch.setattr(migration, "SETTLE_SECONDS", 0.5)
    monkeypatch.setattr("moving.chunks_of", plain_chunks)
    made = Site(tmp_path)
    schema = CollectionSchema(COLLECTION, VectorSpec(8))
    made.ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="1")
    made.stores["memory"].ensure_schema(schema)
    made.publish("one", "alpha beta gamma delta")
    made.publish("two", "x 휴가 출산")
    yield made
    made.ledger.close()


def anew(site: Site, backend: Backend | None = None, **more: Any) -> Report:
    remaker = Remaker(NewEmbedder(), Words(), NewAnalyzer())  # type: ignore[arg-type]
    return reindex(
        backend or site.backend, COLLECTION, remaker, **{"grace": 0.0, "progress": silent} | more
    )


def terms_of(site: Site) -> set[str]:
    store = site.backend.store_of(site.ledger.collections.get(COLLECTION).store)
    ids = sorted(store.chunk_ids(COLLECTION)["vector"])
    return {term for terms in store.terms(COLLECTION, ids).values() for term in terms.split()}


def test_terms_and_vectors_are_made_anew_and_the_rest_stays(site: Site) -> None:
    before = {d: [c["chunk_id"] for c in s[1]] for d, s in site.state().items()}
    report = anew(site)
    record = site.ledger.collections.get(COLLECTION)
    assert (record.store, record.embedder, record.analyzer) == (NEW, "new", "new")
    assert record.schema.default.dimension == 3
    assert all(term.startswith("new-") for term in terms_of(site))
    store = site.backend.store_of(NEW)
    for document_id, ids in before.items():
        chunks = store.get_chunks(COLLECTION, ids, include_vector=True, include_terms=True)
        assert [c.chunk_id for c in chunks] == ids
        whole = next(c for c in chunks if c.level == 0)
        below = [c for c in chunks if c.level == 2]
        mean = np.sum([c.vector for c in below], axis=0)
        assert whole.vector is not None
        assert np.allclose(whole.vector, mean / np.linalg.norm(mean))
        assert whole.document_id == document_id
    assert site.stores["memory"].collections() == [f"{COLLECTION}:2"]
    assert set(report.probes["keyword"]) >= {"overlap@10", "same_first", "itself_first"}
    assert report.probes["vector"]["itself_first"][1] > 0
    assert anew(site).documents == 2
    assert site.ledger.collections.get(COLLECTION).store == "memory"


def test_the_present_form_answers_until_the_switch_and_new_documents_are_in_both(
    site: Site,
) -> None:
    seen: list[int] = []

    def meanwhile(_total: int, _chunks: int) -> None:
        present = site.stores["memory"].keyword_query(COLLECTION, "alpha", 9)
        seen.append(len(present))
        if len(seen) == 1:
            site.publish("three", "alpha late")
            gone = site.ledger.documents.id_of(COLLECTION, "two")
            assert gone is not None
            site.ledger.documents.delete(gone)
            remove_documents(Backend(**{**site.backend.__dict__, "kinds": ("memory",)}), [gone])

    anew(site, progress=meanwhile)
    assert all(seen)
    assert "new-late" in terms_of(site)
    assert "new-휴가" not in terms_of(site)


def test_a_queued_version_repeats_its_steps_and_old_artifacts_no_longer_count(site: Site) -> None:
    item = site.submit("one", "alpha other")
    for step in STEPS[:-1]:
        site.do(item, step)
    anew(site)
    steps = site.ledger.documents.get(item.document_id).steps
    assert [s.state for s in steps] == ["done"] * 3 + ["pending"] * 3
    assert site.ledger.documents.artifact(item.document_id, 1, "embed") is None
    assert site.ledger.documents.artifact(item.document_id, 1, "chunk") is not None


@pytest.mark.parametrize("failed", STEPS[3:])
def test_a_version_that_failed_repeats_its_steps_when_it_is_retried(
    site: Site, failed: Step
) -> None:
    item = site.submit("one", "alpha other")
    for step in STEPS[: STEPS.index(failed)]:
        site.do(item, step)
    site.ledger.leases.fail(taken(site.ledger, item, failed), ObjectRefused("no"))
    anew(site)
    assert len(site.ledger.failures.retry(Which())) == 1
    steps = site.ledger.documents.get(item.document_id).steps
    assert [s.state for s in steps] == ["done"] * 3 + ["pending"] * 3


@pytest.mark.parametrize("calls", [10, 30, 45, 60, 70])
def test_a_killed_command_is_finished_by_the_same_command(site: Site, calls: int) -> None:
    with pytest.raises(Killed):
        anew(site, mortal(site, Fate(calls)))
    run_out(site)
    anew(site)
    assert all(term.startswith("new-") for term in terms_of(site))
    assert site.ledger.moves.underway(COLLECTION) is None
    assert len(site.stores["memory"].collections()) == 1


def test_a_copy_of_an_earlier_analyzer_is_not_continued(site: Site) -> None:
    def killed(_total: int, _chunks: int) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NewAnalyzer, "analyze", lambda _, text: text)
        with pytest.raises(KeyboardInterrupt):
            anew(site, progress=killed)
    anew(site)
    assert all(term.startswith("new-") for term in terms_of(site))


def test_a_rebuilt_collection_moves_to_another_store_but_not_to_its_own(site: Site) -> None:
    anew(site)
    more: dict[str, Any] = {"keep": False, "grace": 0, "progress": silent}
    with pytest.raises(Conflict, match="already"):
        migrate(site.backend, COLLECTION, "memory", **more)
    migrate(site.backend, COLLECTION, "other", **more)
    assert site.stores["memory"].collections() == []


def test_chunks_that_a_client_provided_are_not_made_anew(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.make()
    site.publish("one", "alpha beta")  # with vectors of another name
    with pytest.raises(Conflict, match="a client provided the chunks"):
        anew(site)
    site.ledger.close()


def test_sides() -> None:
    assert both_sides(["a"]) == ["a", "a:2"]
    assert other_side(other_side("a")) == "a"
