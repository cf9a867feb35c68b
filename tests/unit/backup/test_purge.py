"""Purges leave nothing of a document, a tenant or a user, here and in backups."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from backup_parts import Installation, installation
from learned import say, trace
from sqlalchemy import update

from callslip.config.settings import MemorySettings, TracesSettings
from callslip.errors import Conflict, DocumentNotFound, TenantNotFound
from callslip.ingestion.maintenance import orphans, purge
from callslip.ingestion.maintenance.purge import purge_document, purge_tenant, purge_user
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.backup import manifest as manifests
from callslip.stores.backup.destination import Destination
from callslip.stores.backup.making import PURGES, has_ended
from callslip.stores.backup.parts import rows
from callslip.stores.backup.purging import purge_backups
from callslip.stores.ledger import Accepted
from callslip.stores.ledger.base import memory_tables, schema
from callslip.stores.tfidf.store import TfidfStore

MARKER = "xyzzymarker"
SEARCHES = (memory_tables.retrieval_events, memory_tables.traces)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Installation]:
    """An installation on files alone, with a document `kept` and what belongs to it."""
    folder = tmp_path / "here"
    store = TfidfStore(tmp_path / "tfidf")
    with installation(folder, store) as made, closing(store):
        made.collection()
        kept = made.publish("kept", "alpha", "beta")
        made.ledger.webhooks.create("https://example.org/", "s" * 32, ["document.live"])
        searched(made, kept, "ann", "kept question")
        yield made


def searched(place: Installation, item: Accepted, user: str, query: str, tenant: str = "") -> str:
    """Record a search that found the document, feedback of a user, and a conversation with it."""
    chunks = sorted(place.ledger.purge.chunk_ids([item.document_id]))
    one = trace(query, chunks, tenant=tenant)
    Learning(place.ledger, MemorySettings(), TracesSettings()).record([one])
    say(place.ledger, one.trace_id, chunks[:1], user=user)
    place.converse(f"{user}:1", f"answer of {query}", one.trace_id, tenant)
    return one.trace_id


def marked(place: Installation, **more: str) -> Accepted:
    """A document that says the marker everywhere, in two versions, searched and in a webhook."""
    place.publish(f"{MARKER}.txt", f"{MARKER}old", title=MARKER, about=MARKER, **more)
    item = place.publish(f"{MARKER}.txt", MARKER, "gamma", title=MARKER, about=MARKER, **more)
    place.ledger.webhooks.fan_out()
    searched(place, item, "bob", f"question of {MARKER}", more.get("tenant", ""))
    return item


def traces(folder: Path, *needles: str) -> list[str]:
    """The files with one of these texts."""
    return [
        f"{path.relative_to(folder)}: {needle}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        for needle in needles
        if needle.encode() in path.read_bytes()
    ]


def conversations(place: Installation) -> set[str]:
    with place.ledger.tables.snapshot() as snapshot:
        return {row[3] for row in snapshot.rows("conversations")}


def test_nothing_of_a_purged_document_is_in_a_file(here: Installation, tmp_path: Path) -> None:
    item = marked(here)
    chunks = here.ledger.purge.chunk_ids([item.document_id])
    assert traces(tmp_path, MARKER)
    receipt = purge_document(here.backend, here.threads, item.document_id)
    assert traces(tmp_path, MARKER, *chunks) == []
    assert receipt["before"]["blobs"] > 5
    assert not any(receipt["after"].values())
    assert receipt["rows"]["traces"] == 1
    assert conversations(here) == {"ann:1"}
    document = here.ledger.documents.get(item.document_id)
    assert document.name == "purged"
    assert document.receipt
    assert [i for i, _ in here.ledger.transcripts.ids("papers")] != []
    assert here.ledger.searches.get(here.threads.trace_ids(_only_key(here))[0])
    assert purge_document(here.backend, here.threads, item.document_id)["rows"] == {}
    with pytest.raises(DocumentNotFound):
        purge_document(here.backend, here.threads, "0" * 32)


def _only_key(place: Installation) -> str:
    (key,) = place.ledger.purge.conversations("papers", "")
    return key


def test_a_user_is_forgotten_and_the_memory_corrected(here: Installation, tmp_path: Path) -> None:
    before = here.ledger.memory.sums("papers")
    item = here.publish("other", "delta")
    searched(here, item, MARKER, f"question of {MARKER}")
    purge_user(here.backend, here.threads, MARKER)
    assert traces(tmp_path, MARKER) == []
    assert conversations(here) == {"ann:1"}
    assert here.ledger.memory.sums("papers") == before
    assert here.ledger.documents.get(item.document_id).live_version == 1


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_tenant_is_gone_with_all_it_had_also_after_a_kill(
    here: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.collection("shared", tenants=True)
    here.ledger.tenants.create("shared", MARKER)
    here.ledger.tenants.create("shared", "other")
    for tenant in (MARKER, "other"):
        here.publish("a.txt", f"in{tenant}", collection="shared", tenant=tenant)
    with monkeypatch.context() as patch:
        patch.setattr(here.ledger.purge, "compact", _killed)
        with pytest.raises(KeyboardInterrupt):
            purge_tenant(here.backend, here.threads, "shared", MARKER)
    receipt = purge_tenant(here.backend, here.threads, "shared", MARKER)
    left = {line.partition(":")[0].partition("/documents/")[2] for line in traces(tmp_path, MARKER)}
    assert {name.partition("/")[0] for name in left} <= {PURGES, ""}, "the receipt names the tenant"
    assert here.ledger.tenants.all("shared") == ["other"]
    assert len(receipt["document_ids"]) == 1
    assert len(here.backend.blobs.names(PURGES)) == 1
    assert here.store.count("shared", tenant="other") > 0
    with pytest.raises(TenantNotFound):
        purge_tenant(here.backend, here.threads, "shared", "nobody")


def test_a_purge_that_was_interrupted_ends_with_the_receipt_of_the_whole(
    here: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = here.publish("p.txt", "eta")
    child = here.publish("p.txt/c.txt", "theta")
    inner = here.publish("p.txt/c.txt/g.txt", "iota")
    searched(here, inner, "bob", "question of g")
    with here.ledger.searches._database.writing() as connection:
        for item, parent in ((child, outer), (inner, child)):
            mine = schema.documents.c.document_id == item.document_id
            parent_id = {"parent_id": parent.document_id}
            connection.execute(update(schema.documents).where(mine).values(parent_id))
    with monkeypatch.context() as patch:
        patch.setattr(orphans, "UPSERT_SECONDS", 0)
        patch.setattr(here.ledger.moves, "upserting", lambda _: True)
        with pytest.raises(Conflict, match="do not end"):
            purge_document(here.backend, here.threads, child.document_id)
    (name,) = here.backend.blobs.names(PURGES)
    assert not has_ended(json.loads(here.backend.blobs.read(PURGES, name)))
    receipt = purge_document(here.backend, here.threads, child.document_id)
    assert receipt == json.loads(here.backend.blobs.read(PURGES, name))
    assert has_ended(receipt)
    assert receipt["document_ids"] == [child.document_id, inner.document_id]
    receipts = [here.ledger.documents.get(i).receipt for i in receipt["document_ids"]]
    assert receipt["before"] == sum((Counter(r and r["before"]) for r in receipts), Counter())
    assert receipt["rows"]["traces"] == 1
    assert receipt["rows"]["conversations"] == 1
    assert receipt["notes"] == [
        f"Document {outer.document_id} contains this one in its file: purge it too."
    ]


def test_a_receipt_that_an_earlier_version_began_is_completed(
    here: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = here.publish("other", "kappa")
    what = {"document": item.document_id}
    with monkeypatch.context() as patch:
        patch.setattr(purge, "_hide", _killed)
        with pytest.raises(KeyboardInterrupt):
            purge_document(here.backend, here.threads, item.document_id)
    (name,) = here.backend.blobs.names(PURGES)
    began = {"at": 1.0, "name": name, "what": what, "document_ids": [item.document_id]}
    here.backend.blobs.write(PURGES, name, json.dumps(began).encode())
    receipt = purge_document(here.backend, here.threads, item.document_id)
    assert (receipt["name"], receipt["notes"]) == (name, [])
    assert receipt["before"]["blobs"] > 0


@pytest.mark.long
@pytest.mark.parametrize("stored", ["compressed", "trace alone", "plain", "damaged"])
def test_searches_are_purged_however_they_are_stored(
    here: Installation, tmp_path: Path, stored: str
) -> None:
    item = here.publish(f"{MARKER}.txt", MARKER)
    one = trace("question", sorted(here.ledger.purge.chunk_ids([item.document_id])))
    recorded = MemorySettings(record=stored != "trace alone")
    Learning(here.ledger, recorded, TracesSettings()).record([one])
    if stored == "plain":  # as an earlier version stored them
        body = here.ledger.searches.trace(one.trace_id, keep_seconds=60).body
        hits = here.ledger.searches.get(one.trace_id).hits
        change(here, one.trace_id, {"hits": hits, "packed": None}, {"body": body, "packed": None})
    elif stored == "damaged":
        change(here, one.trace_id, {"packed": b"x"}, {"packed": b"x"})
    to = Destination(str(tmp_path / "backups"), make=True)
    here.back_up(to)
    purge_backups(to, purge_document(here.backend, here.threads, item.document_id))
    [name] = to.names(manifests.FOLDER)
    for table in SEARCHES:
        part = manifests.read(to, name).table(table.name)
        left = {row[part.columns.index("trace_id")] for row in rows(to, part)}
        assert one.trace_id not in left
        assert len(left) == 1  # of the document that stays
        with here.ledger.tables.snapshot() as snapshot:
            assert {row[0] for row in snapshot.rows(table.name)} == left


def change(place: Installation, trace_id: str, *values: dict[str, Any]) -> None:
    """Change the record and the trace of a search."""
    with place.ledger.searches._database.writing() as connection:
        for table, changed in zip(SEARCHES, values, strict=True):
            mine = table.c.trace_id == trace_id
            assert connection.execute(update(table).where(mine).values(changed)).rowcount == 1


@pytest.mark.long
@pytest.mark.parametrize("what", ["document", "user"])
def test_old_backups_are_purged_and_stay_whole(
    here: Installation, tmp_path: Path, what: str
) -> None:
    item = marked(here)
    to = Destination(str(tmp_path / "backups"), make=True)
    here.back_up(to)
    here.publish("later", "epsilon")
    here.back_up(to)
    assert in_backups(to)
    if what == "document":
        receipt = purge_document(here.backend, here.threads, item.document_id)
    else:
        receipt = purge_user(here.backend, here.threads, "bob")
    counts = purge_backups(to, receipt)
    assert counts["rows"] > 0
    assert counts["objects"] > 0
    if what == "document":
        assert in_backups(to) == []
    for name in to.names(manifests.FOLDER):
        with installation(tmp_path / name) as there:
            report = there.restore(to, name)
            assert (report.faults, report.lost) == ([], [])
            assert conversations(there) == {"ann:1"}
            assert (there.ledger.documents.id_of("papers", "kept")) is not None
            gone = there.ledger.documents.id_of("papers", f"{MARKER}.txt") is None
            assert gone == (what == "document")


def test_a_tenant_is_purged_from_backups(here: Installation, tmp_path: Path) -> None:
    here.collection("shared", tenants=True)
    for tenant in (MARKER, "other"):
        here.ledger.tenants.create("shared", tenant)
        here.publish("a.txt", f"in{tenant}", collection="shared", tenant=tenant)
    to = Destination(str(tmp_path / "backups"), make=True)
    here.back_up(to)
    purge_backups(to, purge_tenant(here.backend, here.threads, "shared", MARKER))
    assert in_backups(to) == []
    with installation(tmp_path / "there") as there:
        assert there.restore(to).faults == []
        assert there.ledger.tenants.all("shared") == ["other"]


def in_backups(to: Destination) -> list[str]:
    """The parts of all backups in which the marker is."""
    found = []
    for name in to.names(manifests.FOLDER):
        manifest = manifests.read(to, name)
        for key, part in manifest.parts.items():
            if any(MARKER in repr(row) for row in rows(to, part)):
                found.append(f"{name} {key}")
            for row in rows(to, part) if key == manifests.BLOBS else ():
                if MARKER.encode() in b"".join(to.read(row[4])):
                    found.append(f"{name} {row[1]}")
    return found


@pytest.mark.long
@pytest.mark.parametrize("later", [False, True])
def test_a_restore_of_a_backup_made_during_a_purge_repeats_the_purge(
    here: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: bool
) -> None:
    item = marked(here)
    to = Destination(str(tmp_path / "backups"), make=True)
    made, hide = [], purge._hide

    def hide_late(*of: Any) -> None:
        made.append(here.back_up(to))
        hide(*of)

    monkeypatch.setattr(purge, "_hide", hide_late)
    purge_document(here.backend, here.threads, item.document_id)
    monkeypatch.undo()
    if later:
        here.back_up(to)
        (name,) = to.names(PURGES)
        assert to.load(PURGES, name)["rows"], "as it was at the end"
    (tmp_path / "restored").mkdir()
    store = TfidfStore(tmp_path / "restored" / "tfidf")
    with installation(tmp_path / "restored" / "there", store) as there, closing(store):
        assert there.restore(to, made[0].name).purged == 1
    assert traces(tmp_path / "restored", MARKER) == []


def test_a_restore_of_an_old_backup_repeats_the_purges(here: Installation, tmp_path: Path) -> None:
    item = marked(here)
    to = Destination(str(tmp_path / "backups"), make=True)
    old = here.back_up(to)
    purge_document(here.backend, here.threads, item.document_id)
    here.back_up(to)
    store = TfidfStore(tmp_path / "restored" / "tfidf")
    (tmp_path / "restored").mkdir()
    with installation(tmp_path / "restored" / "there", store) as there, closing(store):
        report = there.restore(to, old.name)
        assert (report.purged, report.faults, report.lost) == (1, [], [])
    assert traces(tmp_path / "restored", MARKER) == []
