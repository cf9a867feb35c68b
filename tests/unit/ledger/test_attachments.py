"""What leaves a table of somebody else alone: removals, audits, moves, archives, learning."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from backend_parts import backend_of
from memory_store import MemoryStore

from callslip.config.settings import Settings
from callslip.errors import AttachedReadOnly, CollectionNotFound
from callslip.ingestion.maintenance.removal import drop_collection
from callslip.retrieval.candidates.calibration import NO_SAMPLE
from callslip.stores.audit.comparison import audit_scopes
from callslip.stores.backend import Backend
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import ATTACHED, Attachment, CollectionRecord, Ledger
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.stores.transfer.exporting import export_collection
from callslip.stores.transfer.migration import migrate

SCHEMA = CollectionSchema("films", VectorSpec(2))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as made:
        made.create()
        yield made


@pytest.fixture
def films(ledger: Ledger) -> CollectionRecord:
    """A collection that is an attached table."""
    at = Attachment("doc", "films", "none")
    record, new = ledger.collections.create(
        SCHEMA, store=ATTACHED, embedder="unknown", analyzer="unknown", attachment=at
    )
    assert new
    assert record.attached
    return record


def test_the_ledger_keeps_which_table_a_collection_is(
    ledger: Ledger, films: CollectionRecord
) -> None:
    assert ledger.collections.get("films") == films
    assert ledger.collections.all() == [(films, 0)]
    schema = CollectionSchema("papers", VectorSpec(2))
    ledger.collections.create(schema, store="memory", embedder="", analyzer="")
    assert ledger.collections.writable("papers").attachment is None
    with pytest.raises(AttachedReadOnly, match="films"):
        ledger.collections.writable("films")


def test_deleting_it_only_forgets_it_whatever_else_has_its_name(
    ledger: Ledger, films: CollectionRecord
) -> None:
    """Another installation on the same server may keep a collection of this name."""
    store = MemoryStore()
    store.ensure_schema(SCHEMA)
    ledger.collections.delete("films")
    assert ledger.collections.is_attached("films")
    drop_collection(backend_of(ledger, store), "films")
    assert store.collections() == ["films"]
    assert ledger.collections.deleted() == []
    assert not ledger.collections.is_attached("films")
    with pytest.raises(CollectionNotFound):
        ledger.collections.get("films")
    again, new = ledger.collections.create(SCHEMA, store="memory", embedder="", analyzer="")
    assert new
    assert again.attachment is None


def test_audits_moves_and_archives_leave_it_alone(
    ledger: Ledger, films: CollectionRecord, tmp_path: Path
) -> None:
    store = MemoryStore()
    assert audit_scopes(ledger, {"memory": store}) == []
    assert audit_scopes(ledger, {"memory": store}, "films") == []
    parts: dict[str, Any] = {"ledger": ledger, "store_of": lambda _: store}
    backend = Backend(settings=Settings(), **parts, blobs=Blobs(str(tmp_path / "blobs")))

    def progress(*_: object) -> None:
        raise AssertionError("it began")

    with pytest.raises(AttachedReadOnly):
        export_collection(backend, "films", tmp_path / "films.archive", progress)
    with pytest.raises(AttachedReadOnly):
        migrate(backend, "films", "memory", keep=False, grace=0, progress=progress)
    assert not list(tmp_path.glob("films*"))
    assert ledger.moves.underway("films") is None


def test_without_a_sample_every_term_of_a_question_weighs_the_same() -> None:
    idf = NO_SAMPLE.idf("sea fish sea")
    assert set(idf) == {"sea", "fish"}
    assert idf["sea"] == idf["fish"] > 0
    assert NO_SAMPLE.most("sea fish") > 0
