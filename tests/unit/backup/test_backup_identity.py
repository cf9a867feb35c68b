"""Backups and purges with keys, users and collections on a second side."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from backup_parts import Installation, installation

from callslip.ingestion.maintenance.purge import purge_document, purge_user
from callslip.readers import Reader, owner_of
from callslip.stores.backup import manifest as manifests
from callslip.stores.backup.destination import Destination
from callslip.stores.backup.purging import purge_backups
from callslip.stores.backup.restoring import restore_data
from callslip.stores.ledger import AuditEntry
from callslip.stores.sides import other_side


@pytest.fixture
def open_(tmp_path: Path) -> Iterator[Any]:
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(installation(tmp_path / name))


@pytest.fixture
def to(tmp_path: Path) -> Destination:
    return Destination(str(tmp_path / "backups"), make=True)


def test_the_audit_log_of_a_purged_backup_is_still_a_chain(open_: Any, to: Destination) -> None:
    here, there = open_("here"), open_("there")
    here.collection()
    items = [here.publish("a.txt", "alpha"), here.publish("b.txt", "beta")]
    for item in (*items, *items):
        ids = {"document_id": item.document_id}
        entry = AuditEntry(1.0, "ann", "key", "GET documents.get_document", 200, ids)
        here.ledger.audit_log.append([entry])
    here.back_up(to)
    receipt = purge_document(here.backend, here.threads, items[0].document_id)
    assert purge_backups(to, receipt)["rows"] > 0
    assert there.restore(to).faults == []
    assert there.ledger.audit_log.verify().fault is None
    assert there.ledger.audit_log.verify().rows == 4


def test_a_collection_on_a_second_side_comes_back_in_its_kind_of_store(
    open_: Any, to: Destination
) -> None:
    here, there = open_("here"), open_("there")
    here.collection()
    kind = here.store.kind
    move = here.ledger.moves.take("papers", other_side(kind), lease_seconds=60)
    here.ledger.moves.switch(move, kind)
    assert here.ledger.collections.get("papers").store == other_side(kind)
    here.back_up(to)
    name = manifests.newest(to, None)
    restore_data(
        there.backend, there.threads, to, name, to="another", only=frozenset({kind, "another"})
    )
    assert there.ledger.collections.get("papers").store == kind


def test_a_purge_of_a_user_removes_the_conversations_that_the_user_began(
    open_: Any, to: Destination
) -> None:
    here, there = open_("here"), open_("there")
    here.collection()
    began(here, "ann")
    kept = began(here, "bob")
    here.back_up(to)
    receipt = purge_user(here.backend, here.threads, "ann")
    assert here.ledger.purge.conversations("papers", "") == [kept]
    assert "ann" not in str(receipt)
    purge_backups(to, receipt)
    there.restore(to)
    assert there.ledger.purge.conversations("papers", "") == [kept]


def began(place: Installation, user: str) -> str:
    reader = Reader(owner_of(f"user:{user}"), frozenset({f"user:{user}"}))
    key: str = place.threads.over(place.ledger.for_reader(reader)).open("papers", "", "grant")
    return key
