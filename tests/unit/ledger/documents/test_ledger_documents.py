"""Documents and their versions: coming in, being replaced, going away."""

import io
import os
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ledger_moves import (
    KINDS,
    POSTGRESQL,
    claim,
    publish,
    store_chunks,
    submission,
    submit,
    taken,
    work,
)
from pydantic import ValidationError

from callslip.errors import (
    BrokenFile,
    CollectionExists,
    CollectionNotFound,
    DocumentNotFound,
    DuplicateContent,
    LeaseLost,
    SettingsError,
    StoreDown,
)
from callslip.ingestion.intake import take_in
from callslip.messages.options import USUAL, Options
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import STEPS, Ledger
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.schema import about
from callslip.stores.ledger.collections import collections
from callslip.stores.ledger.documents import documents
from callslip.stores.records import CollectionSchema, VectorSpec

pytest_plugins = ["ledger_fixtures"]


def test_the_ledger_tests_run_on_postgresql_too() -> None:
    if POSTGRESQL not in os.environ:
        pytest.skip(f"every ledger test ran on SQLite alone: {POSTGRESQL} names no PostgreSQL")
    assert "postgresql" in KINDS


def test_a_submission_is_version_one_and_waits_with_all_its_steps(ledger: Ledger) -> None:
    item = submit(ledger)
    found = ledger.documents.get(item.document_id)
    assert (item.version, item.fresh) == (1, True)
    assert (found.state, found.live_version, found.newest.state) == ("waiting", None, "queued")
    assert [(s.step, s.state, s.attempts) for s in found.steps] == [
        (step, "pending", 0) for step in STEPS
    ]


def test_the_same_content_again_is_nothing_new(ledger: Ledger) -> None:
    item = submit(ledger)
    again = submit(ledger)
    assert (again.document_id, again.version, again.fresh) == (item.document_id, 1, False)


def test_other_properties_are_a_new_version_even_where_python_takes_them_for_equal(
    ledger: Ledger,
) -> None:
    for version, value in enumerate([1, True, "1", None], 1):
        given = submission("one", "a.txt", flag=value)
        accepted = ledger.documents.submit("papers", given, uuid.uuid4().hex)
        assert accepted.version == version


def test_a_newer_version_supersedes_one_on_its_way_and_not_the_live_one(ledger: Ledger) -> None:
    live = publish(ledger, "one", ["x"])
    waiting = submit(ledger, "two")
    newest = submit(ledger, "three")
    states = [ledger.documents.version(live.document_id, v).state for v in (1, 2, 3)]
    assert states == ["live", "superseded", "queued"]
    assert ledger.documents.get(live.document_id).live_version == 1
    assert (waiting.version, newest.version) == (2, 3)


def test_work_on_a_superseded_version_is_refused_and_its_result_dropped(ledger: Ledger) -> None:
    old = submit(ledger, "one")
    held = taken(ledger, old)
    submit(ledger, "two")
    with pytest.raises(LeaseLost):
        ledger.leases.finish(held, "artifact", {})
    assert claim(ledger, old).reason == "gone"  # type: ignore[union-attr]
    assert ledger.documents.version(old.document_id, 1).state == "superseded"


def test_a_failed_version_is_queued_anew_by_the_same_content_and_keeps_what_was_done(
    ledger: Ledger,
) -> None:
    item = submit(ledger)
    work(ledger, item, "extract")
    ledger.leases.fail(taken(ledger, item, "sectionize"), BrokenFile("it broke"))
    failed = ledger.documents.get(item.document_id)
    assert (failed.state, failed.newest.failure and failed.newest.failure.type) == (
        "failed",
        "broken-file",
    )
    again = submit(ledger)
    assert (again.version, again.fresh) == (1, True)
    steps = ledger.documents.get(item.document_id).steps
    assert [s.state for s in steps[:3]] == ["done", "pending", "pending"]
    work(ledger, again)
    retried = ledger.documents.get(item.document_id).steps[1]
    assert retried.failure is None
    assert retried.attempts == 2


def test_documents_are_counted_by_the_state_of_their_newest_version(ledger: Ledger) -> None:
    assert ledger.documents.states() == {}
    for name, second in (("a.txt", ""), ("b.txt", "queued"), ("c.txt", "failed"), ("d.txt", "")):
        publish(ledger, f"one {name}", "", name=name)
        if second:
            item = submit(ledger, f"two {name}", name)
        if second == "failed":
            ledger.leases.fail(taken(ledger, item), BrokenFile("it broke"))
    gone = submit(ledger, "three", "e.txt")
    ledger.documents.delete(gone.document_id)
    ledger.leases.fail(taken(ledger, submit(ledger, "four", "f.txt")), BrokenFile("it broke"))
    expected = {"live": 2, "queued": 1, "failed": 2}
    assert ledger.documents.states() == ledger.documents.states("papers") == expected
    assert ledger.documents.states("papers", tenants=["x"]) == ledger.documents.states("y") == {}


def test_a_deleted_document_frees_its_name_and_is_not_worked_on(ledger: Ledger) -> None:
    item = submit(ledger)
    held = taken(ledger, item)
    ledger.documents.delete(item.document_id)
    ledger.documents.delete(item.document_id)
    assert ledger.documents.get(item.document_id).state == "deleted"
    assert claim(ledger, item).reason == "gone"  # type: ignore[union-attr]
    with pytest.raises(LeaseLost):
        ledger.leases.finish(held, "artifact", {})
    with pytest.raises(LeaseLost):
        ledger.leases.renew(held)
    assert submit(ledger).document_id != item.document_id
    assert ledger.documents.states("papers") == {"queued": 1}


def test_a_submission_under_the_id_of_a_document_deleted_meanwhile_gets_another_id(
    ledger: Ledger,
) -> None:
    item = submit(ledger)
    known = ledger.documents.id_of("papers", "a.txt")
    assert known == item.document_id
    ledger.documents.delete(known)
    accepted = ledger.documents.submit("papers", submission("two"), known)
    assert accepted.document_id != known
    assert (accepted.version, accepted.fresh) == (1, True)


def test_nothing_comes_into_a_collection_that_is_not_there(ledger: Ledger) -> None:
    with pytest.raises(CollectionNotFound):
        ledger.documents.submit("attic", submission(), uuid.uuid4().hex)
    item = submit(ledger)
    ledger.collections.delete("papers")
    with pytest.raises(CollectionNotFound):
        submit(ledger, "two", "b.txt")
    assert ledger.documents.get(item.document_id).state == "deleted"


def test_a_worker_whose_document_was_forgotten_has_lost_its_lease(ledger: Ledger) -> None:
    held = store_chunks(ledger, submit(ledger), ["x"])
    ledger.collections.delete("papers")
    ledger.collections.forget("papers")
    with pytest.raises(LeaseLost):
        ledger.leases.go_live(held, ["x"], {})
    with pytest.raises(DocumentNotFound):
        ledger.documents.get(held.document_id)
    ledger.leases.drop(held)


def test_what_is_not_said_of_the_same_content_stays(ledger: Ledger) -> None:
    output = replace(submission("one", valid_to="2026-07-01"), title="A title")
    first = ledger.documents.submit("papers", output, "d")
    bare = replace(output, title=None, properties=None)
    assert ledger.documents.submit("papers", bare, "x") == replace(first, fresh=False)
    renamed = ledger.documents.submit("papers", replace(bare, title="Another"), "x")
    newest = ledger.documents.version("d", renamed.version)
    assert (newest.title, newest.properties) == ("Another", {"valid_to": "2026-07-01"})
    cleared = ledger.documents.submit("papers", replace(bare, properties={}), "x")
    newest = ledger.documents.version("d", cleared.version)
    assert (newest.title, newest.properties) == ("Another", {})


def test_another_content_has_what_is_said_with_it_and_nothing_else(ledger: Ledger) -> None:
    ledger.documents.submit("papers", submission("one", valid_to="2026-07-01"), "d")
    bare = replace(submission("two"), title=None, properties=None)
    newest = ledger.documents.version("d", ledger.documents.submit("papers", bare, "x").version)
    assert (newest.version, newest.title, newest.properties) == (2, "", {})


def test_documents_are_listed_newest_first_in_pages(ledger: Ledger) -> None:
    names = [f"{n}.txt" for n in range(5)]
    for name in names:
        submit(ledger, name, name)
    page = ledger.documents.find("papers", limit=3)
    rest = ledger.documents.find("papers", limit=3, before=page[-1].created_at)
    assert [d.name for d in (*page, *rest)] == names[::-1]


def test_the_same_bytes_under_another_name_are_found_until_they_are_replaced(
    ledger: Ledger,
) -> None:
    item = submit(ledger, "one", "a.txt")
    sha256 = submission("one").sha256
    assert ledger.documents.with_content("papers", sha256, but="b.txt") == [item.document_id]
    assert ledger.documents.with_content("papers", sha256, but="a.txt") == []
    submit(ledger, "two", "a.txt")
    assert ledger.documents.with_content("papers", sha256, but="b.txt") == []


def test_many_who_submit_one_name_at_once_make_one_document_and_lose_no_version(
    ledger: Ledger,
) -> None:
    start = threading.Barrier(8)

    def put(n: int) -> tuple[str, int]:
        start.wait()
        accepted = submit(ledger, f"content {n}")
        return accepted.document_id, accepted.version

    with ThreadPoolExecutor(8) as pool:
        accepted = list(pool.map(put, range(8)))
    assert len({document_id for document_id, _ in accepted}) == 1
    assert sorted(version for _, version in accepted) == list(range(1, 9))
    document_id = accepted[0][0]
    states = [ledger.documents.version(document_id, v).state for v in range(1, 9)]
    assert states == ["superseded"] * 7 + ["queued"]


def test_a_collection_is_forgotten_in_short_transactions_and_goes_on_after_a_kill(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every writer waits for SQLite's lock while one transaction deletes."""
    begun, writing = [0], Database.writing

    def killed_at_the_fourth(self: Database) -> Any:
        begun[0] += 1
        if begun[0] == 4:
            raise StoreDown("killed")
        return writing(self)

    ids = [submit(ledger, f"text {n}", f"{n}.txt").document_id for n in range(7)]
    ledger.collections.delete("papers")
    monkeypatch.setattr(collections, "PER_TRANSACTION", 2)
    with monkeypatch.context() as patched:
        patched.setattr(Database, "writing", killed_at_the_fourth)
        with pytest.raises(StoreDown):
            ledger.collections.forget("papers")
    assert len(ledger.documents.get_all(ids)) == 1
    assert ledger.collections.deleted() == ["papers"]
    ledger.collections.forget("papers")
    assert ledger.documents.get_all(ids) == []
    assert ledger.collections.deleted() == []


def test_a_collection_is_made_once_and_not_with_other_settings(ledger: Ledger) -> None:
    same = {"store": "memory", "embedder": "tiny", "analyzer": "1"}
    found, new = ledger.collections.create(CollectionSchema("papers", VectorSpec(4)), **same)  # type: ignore[arg-type]
    assert (found.name, new) == ("papers", False)
    with pytest.raises(CollectionExists):
        ledger.collections.create(
            CollectionSchema("papers", VectorSpec(4)), **(same | {"embedder": "e5"})
        )  # type: ignore[arg-type]
    publish(ledger, "one", ["x"])
    assert [(c.name, live) for c, live in ledger.collections.all()] == [("papers", 1)]


def test_options_are_kept_with_a_collection_and_can_be_changed(ledger: Ledger) -> None:
    assert ledger.collections.get("papers").options == USUAL
    other = Options.model_validate({"scrub": "text", "dictionary": {"출산장려금": ["birth grant"]}})
    settings = {"store": "memory", "embedder": "tiny", "analyzer": "1"}
    with pytest.raises(CollectionExists, match="other options"):
        ledger.collections.create(
            CollectionSchema("papers", VectorSpec(4)), options=other, **settings
        )
    ledger.collections.set_options("papers", other)
    assert ledger.collections.get("papers").options == other
    assert ledger.collections.all()[0][0].options == other
    _, new = ledger.collections.create(CollectionSchema("papers", VectorSpec(4)), **settings)
    assert not new
    with pytest.raises(CollectionNotFound):
        ledger.collections.set_options("nowhere", other)


@pytest.mark.parametrize(
    "wrong",
    [
        {"scrub": "all"},
        {"unknown": 1},
        {"rules": [{"set": {"doc_type": "law"}}]},
        {"rules": [{"set": {}, "name": "*"}]},
        {"rules": [{"set": {"lang": "ko"}, "name": "*"}]},
        {"dictionary": {"": []}},
        {"json_fields": {"title": ["a,b"]}},
        {"json_fields": {"body": ["a"]}},
        {"dictionary": {"a": ["\ud800"]}},
        {"dictionary": {str(n): [] for n in range(2001)}},
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Options.model_validate(wrong)


def test_a_snapshot_is_of_one_moment_and_holds_nobody_up(ledger: Ledger, ledger_url: str) -> None:
    database = Database(ledger_url)
    version = about.select()
    with database.snapshot() as snapshot:
        before = snapshot.execute(version).one()
        with database.writing() as connection:
            connection.execute(about.update().values(schema_version=99))
        assert snapshot.execute(version).one() == before
    with database.snapshot() as snapshot:
        assert snapshot.execute(version).one().schema_version == 99
    database.close()


def test_a_ledger_of_another_version_is_refused(ledger: Ledger, ledger_url: str) -> None:
    database = Database(ledger_url)
    with database.writing() as connection:
        connection.execute(about.update().values(schema_version=99))
    with pytest.raises(SettingsError, match="99"):
        ledger.create()
    database.close()


def test_a_ledger_that_cannot_be_opened_is_a_store_that_is_down() -> None:
    for url in ("sqlite:////proc/ledger.db", "postgresql+psycopg://nobody@127.0.0.1:1/none"):
        ledger = Ledger(url)
        with pytest.raises(StoreDown):
            ledger.create()
        ledger.close()


def test_of_one_content_under_many_names_at_once_one_is_taken(
    ledger: Ledger, tmp_path: Path
) -> None:
    blobs = Blobs(str(tmp_path / "blobs"))

    def take(number: int) -> str | None:
        given = submission("the same", f"{number}.txt")
        with suppress(DuplicateContent):
            return take_in(ledger, blobs, "papers", given, io.BytesIO(b"the same")).document_id
        return None

    with ThreadPoolExecutor(16) as pool:
        taken = set(pool.map(take, range(50))) - {None}
    assert len(taken) == 1
    assert blobs.document_ids() == taken, "what was refused leaves no original"


def test_properties_of_a_collection_that_is_gone_are_an_error_that_names_it(ledger: Ledger) -> None:
    ledger.collections.delete("papers")
    ledger.collections.forget("papers")
    with pytest.raises(CollectionNotFound, match="papers"):
        ledger.collections.has_properties("papers", {"year"})


def test_an_upload_while_its_tenant_is_deleted_goes_with_it(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = CollectionSchema("notes", VectorSpec(4), tenants=True)
    ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="1")
    ledger.tenants.create("notes", "ann")
    looked, deleting = threading.Event(), threading.Event()
    make_tenant = documents.make_tenant

    def slow(*arguments: Any) -> None:
        make_tenant(*arguments)
        looked.set()
        deleting.wait(10)

    monkeypatch.setattr(documents, "make_tenant", slow)
    with ThreadPoolExecutor() as pool:
        sent = submission("late")
        upload = pool.submit(ledger.documents.submit, "notes", sent, uuid.uuid4().hex, tenant="ann")
        assert looked.wait(10)
        deletion = pool.submit(ledger.tenants.delete, "notes", "ann")
        with suppress(TimeoutError):
            deletion.result(0.3)
        deleting.set()
        assert upload.result().document_id in deletion.result()
    assert ledger.documents.get(upload.result().document_id).deleted_at is not None
