"""What leaves a table of somebody else alone: removals, audits, moves, archives, learning."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from memory_store import MemoryStore

from callslip.errors import AttachedReadOnly, CollectionNotFound
from retrieval.background import NOTHING
from stores.audit import places
from stores.blobs import Blobs
from stores.ledger import ATTACHED, Attachment, CollectionRecord, Ledger
from stores.records import CollectionSchema, VectorSpec
from stores.transfer.departure import export_collection
from stores.transfer.house import House
from stores.transfer.migration import migrate
from tasks import maintenance

SCHEMA = CollectionSchema("films", VectorSpec(2))


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as made:
        made.create()
        monkeypatch.setattr(maintenance, "ledger", lambda: made)
        monkeypatch.setattr(maintenance, "blobs", lambda: Blobs(str(tmp_path / "blobs")))
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
    schema = CollectionSchema("shelf", VectorSpec(2))
    ledger.collections.create(schema, store="memory", embedder="", analyzer="")
    assert ledger.collections.writable("shelf").attachment is None
    with pytest.raises(AttachedReadOnly, match="films"):
        ledger.collections.writable("films")


def test_deleting_it_only_forgets_it_whatever_else_has_its_name(
    ledger: Ledger, films: CollectionRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another installation on the same server may keep a collection of this name."""
    store = MemoryStore()
    store.ensure_schema(SCHEMA)
    monkeypatch.setattr(maintenance, "stores", lambda: {"memory": store})
    ledger.collections.delete("films")
    assert ledger.collections.is_attached("films")
    maintenance.drop("films")
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
    assert places(ledger, {"memory": store}) == []
    assert places(ledger, {"memory": store}, "films") == []
    parts: dict[str, Any] = {"ledger": ledger, "store_of": lambda _: store}
    house = House(**parts, blobs=Blobs(str(tmp_path / "blobs")))

    def progress(*_: object) -> None:
        raise AssertionError("it began")

    with pytest.raises(AttachedReadOnly):
        export_collection(house, "films", tmp_path / "films.archive", progress)
    with pytest.raises(AttachedReadOnly):
        migrate(house, "films", "memory", keep=False, grace=0, progress=progress)
    assert not list(tmp_path.glob("films*"))
    assert ledger.moves.underway("films") is None


def test_without_a_sample_every_term_of_a_question_weighs_the_same() -> None:
    idf = NOTHING.idf("sea fish sea")
    assert set(idf) == {"sea", "fish"}
    assert idf["sea"] == idf["fish"] > 0
    assert NOTHING.most("sea fish") > 0
