"""Files within files as documents of their own, on a real ledger and real blobs."""

import hashlib
import io
import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from memory_store import MemoryStore
from office_files import zip_file
from pipeline_parts import SETTINGS, doing, make_shop, with_backend
from sqlalchemy import update

from callslip.ingestion.context import StepContext
from callslip.ingestion.intake import take_in
from callslip.ingestion.pipeline import run_step
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Accepted, DocumentRecord, Ledger, Submission
from callslip.stores.ledger.base import schema
from callslip.stores.records import CollectionSchema, VectorSpec


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[StepContext]:
    """A workshop on a ledger and blobs of its own, with the collection `shelf`."""
    schema = CollectionSchema("shelf", VectorSpec(4), tenants=True)
    store = MemoryStore()
    store.ensure_schema(schema)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="")
        yield make_shop(ledger, Blobs(str(tmp_path / "blobs")), store)


def send(shop: StepContext, content: bytes, name: str = "a.zip", **properties: Any) -> Accepted:
    """Submit bytes as the desk does."""
    digest = hashlib.sha256(content).hexdigest()
    return take_in(
        shop.ledger,
        shop.blobs,
        "shelf",
        Submission(name, name, "", digest, len(content), properties),
        io.BytesIO(content),
        tenant="acme",
    )


def work(shop: StepContext, item: Accepted) -> None:
    """Do all steps of a version and of what it brings, as the workers do."""
    doing(shop)(item.document_id, item.version)
    for child in shop.ledger.fair_queue.take(math.inf):
        work(shop, Accepted(child.document_id, child.version, fresh=True))


def shelf(shop: StepContext) -> dict[str, DocumentRecord]:
    """The documents that are there, by name."""
    return {d.name: d for d in shop.ledger.documents.find("shelf", limit=1000)}


def states(shop: StepContext) -> dict[str, str]:
    return {name: document.state for name, document in sorted(shelf(shop).items())}


def failure(document: DocumentRecord) -> str | None:
    return document.newest.failure.type if document.newest.failure else None


def with_limits(shop: StepContext, **limits: int) -> StepContext:
    extract = SETTINGS.extract.model_copy(update=limits)
    return with_backend(shop, settings=SETTINGS.model_copy(update={"extract": extract}))


def test_the_files_of_a_zip_become_documents_that_know_their_parent(shop: StepContext) -> None:
    item = send(shop, zip_file({"docs/a.txt": "alpha words", "b.pdf": "no pdf"}), dept="law")
    work(shop, item)
    assert states(shop) == {"a.zip": "live", "a.zip/b.pdf": "failed", "a.zip/docs/a.txt": "live"}
    child = shelf(shop)["a.zip/docs/a.txt"]
    assert (child.parent_id, child.tenant, child.newest.filename) == (
        item.document_id,
        "acme",
        "a.txt",
    )
    assert child.newest.properties == {"dept": "law"}
    assert failure(shelf(shop)["a.zip/b.pdf"]) == "broken-file"
    assert shelf(shop)["a.zip"].parent_id is None


def test_an_extract_step_that_is_repeated_makes_no_second_child(shop: StepContext) -> None:
    class Killed(BaseException):
        pass

    class Dies:
        def __init__(self, leases: Any) -> None:
            self._leases = leases

        def __getattr__(self, name: str) -> Any:
            return getattr(self._leases, name)

        def finish(self, *given: Any) -> None:
            raise Killed

    item = send(shop, zip_file({"a.txt": "alpha", "b.txt": "beta"}))
    whole, shop.ledger.leases = shop.ledger.leases, Dies(shop.ledger.leases)  # type: ignore[assignment]
    with pytest.raises(Killed):
        run_step(shop, "extract", item.document_id, 1)
    shop.ledger.leases = whole
    before = {name: d.document_id for name, d in shelf(shop).items()}
    assert len(before) == 3
    shop.ledger.leases.expire_all()
    work(shop, item)
    assert {name: d.document_id for name, d in shelf(shop).items()} == before
    assert set(states(shop).values()) == {"live"}
    assert all(d.newest.version == 1 for d in shelf(shop).values())


def test_a_new_version_keeps_what_stayed_and_deletes_what_vanished(shop: StepContext) -> None:
    work(shop, send(shop, zip_file({"a.txt": "alpha", "b.txt": "beta", "c.txt": "gamma"})))
    before = shelf(shop)
    second = send(shop, zip_file({"a.txt": "alpha", "b.txt": "changed", "d.txt": "delta"}))
    for step in ("extract", "sectionize", "chunk", "enrich", "embed"):
        run_step(shop, step, second.document_id, second.version)  # type: ignore[arg-type]
    assert "a.zip/c.txt" in shelf(shop), "until the new version is live"
    run_step(shop, "upsert", second.document_id, second.version)
    work(shop, second)
    after = shelf(shop)
    assert set(after) == {"a.zip", "a.zip/a.txt", "a.zip/b.txt", "a.zip/d.txt"}
    assert after["a.zip/a.txt"].newest.version == 1
    assert after["a.zip/b.txt"].live_version == 2
    assert shop.ledger.documents.get(before["a.zip/c.txt"].document_id).state == "deleted"


def test_a_version_that_fails_deletes_nothing(shop: StepContext) -> None:
    work(shop, send(shop, zip_file({"a.txt": "alpha"})))
    work(shop, send(shop, b"PK\x03\x04 broken"))
    assert states(shop) == {"a.zip": "failed", "a.zip/a.txt": "live"}


def test_changed_properties_reach_the_children(shop: StepContext) -> None:
    packed = zip_file({"a.txt": "alpha"})
    work(shop, send(shop, packed, year=2024))
    work(shop, send(shop, packed, year=2025))
    child = shelf(shop)["a.zip/a.txt"]
    assert (child.live_version, child.newest.properties) == (2, {"year": 2025})


def test_deleting_a_document_deletes_all_that_came_within_it(shop: StepContext) -> None:
    inner = zip_file({"deep.txt": "deep"})
    item = send(shop, zip_file({"inner.zip": inner, "a.txt": "alpha"}))
    work(shop, item)
    assert "a.zip/inner.zip/deep.txt" in shelf(shop)
    shop.ledger.documents.delete(item.document_id)
    assert shelf(shop) == {}
    assert len(shop.ledger.sweep.unremoved(resend_seconds=0)) == 4


def test_a_child_that_was_deleted_by_itself_does_not_come_back(shop: StepContext) -> None:
    item = send(shop, zip_file({"a.txt": "alpha", "b.txt": "beta"}))
    work(shop, item)
    shop.ledger.documents.delete(shelf(shop)["a.zip/b.txt"].document_id)
    assert shop.ledger.leases.reopen(item.document_id, 1, "extract")
    work(shop, item)
    assert set(shelf(shop)) == {"a.zip", "a.zip/a.txt"}


def test_nothing_comes_of_a_parent_that_was_deleted_meanwhile(shop: StepContext) -> None:
    item = send(shop, zip_file({"a.txt": "alpha"}))

    class Deleting:
        def extract(self, data: bytes, filename: str, fields: Any) -> Any:
            shop.ledger.documents.delete(item.document_id)
            return shop.extractor.extract(data, filename, fields)

    during = replace(shop, extractor=Deleting())  # type: ignore[arg-type]
    assert run_step(during, "extract", item.document_id, 1) == "stop"
    assert shelf(shop) == {}


def test_a_document_of_the_same_name_is_left_alone(shop: StepContext) -> None:
    own = send(shop, b"my own words", "a.zip/a.txt")
    work(shop, own)
    work(shop, send(shop, zip_file({"a.txt": "alpha"})))
    assert set(shelf(shop)) == {"a.zip", "a.zip/a.txt", "a.zip/a (2).txt"}
    assert shelf(shop)["a.zip/a.txt"].newest.version == 1


def test_children_arrive_with_an_archive_unless_their_parent_is_anothers(shop: StepContext) -> None:
    work(shop, send(shop, zip_file({"a.txt": "alpha"})))
    snapshot = shop.ledger.transcripts.read(shelf(shop)["a.zip/a.txt"].document_id)
    assert snapshot is not None
    given = snapshot.transcript
    assert (given.parent_id, given.parent_version) == (shelf(shop)["a.zip"].document_id, 1)
    lease = shop.ledger.moves.take("shelf", "memory", lease_seconds=60)
    for tenant, parent in (("acme", given.parent_id), ("other", None)):
        moved = replace(given, document_id=f"moved{tenant}", name="moved", tenant=tenant, chunks={})
        shop.ledger.transcripts.write("shelf", moved, lease)
        assert shop.ledger.documents.get(moved.document_id).parent_id == parent


def test_whoever_submits_a_child_by_itself_makes_it_a_document_of_its_own(
    shop: StepContext,
) -> None:
    item = send(shop, zip_file({"a.txt": "alpha"}))
    work(shop, item)
    work(shop, send(shop, b"my own words", "a.zip/a.txt"))
    assert shelf(shop)["a.zip/a.txt"].parent_id is None
    shop.ledger.documents.delete(item.document_id)
    assert set(shelf(shop)) == {"a.zip/a.txt"}


def test_files_within_files_end_at_the_depth_that_is_allowed(shop: StepContext) -> None:
    packed = b"alpha"
    for n in range(5):
        packed = zip_file({"a.txt" if n == 0 else "a.zip": packed})
    work(with_limits(shop, max_depth=2), send(shop, packed))
    found = shelf(shop)
    assert set(found) == {"a.zip", "a.zip/a.zip", "a.zip/a.zip/a.zip"}
    assert failure(found["a.zip/a.zip/a.zip"]) == "extraction-limit"
    assert found["a.zip"].state == "live"


def test_a_file_that_holds_itself_ends_at_once(
    shop: StepContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A real ZIP that holds itself is a fixed point that nobody can write by hand: so the reader
    # is given one in its stead, by saying that the member is the archive.
    packed = zip_file({"a.txt": "alpha", "self.zip": "?"})

    class Holding:
        def extract(self, data: bytes, filename: str, fields: Any) -> Any:
            text = shop.extractor.extract(data, filename, fields)
            if data != packed:
                return text
            digest = hashlib.sha256(packed).hexdigest()
            first, second = text.attachments
            again = replace(second, sha256=digest, size=len(packed), content=packed)
            return replace(text, attachments=(first, again))

    work(replace(shop, extractor=Holding()), send(shop, packed))  # type: ignore[arg-type]
    assert states(shop) == {"a.zip": "live", "a.zip/a.txt": "live"}


def test_count_and_size_are_bounded_over_all_depths(shop: StepContext) -> None:
    inner = {f"{n}.zip": zip_file({f"{n}-{m}.txt": f"{n} {m}" for m in range(4)}) for n in range(4)}
    work(with_limits(shop, max_members=10), send(shop, zip_file(inner)))
    found = shelf(shop)
    assert len(found) <= 11
    assert [failure(found[f"a.zip/{n}.zip"]) for n in range(4)].count("extraction-limit") == 3
    large = {f"{n}.zip": zip_file({"x.txt": b"x y " * 150_000}) for n in range(3)}
    work(with_limits(shop, max_members_mb=1), send(shop, zip_file(large), "b.zip"))
    found = shelf(shop)
    assert sum(f"b.zip/{n}.zip/x.txt" in found for n in range(3)) == 1


def test_a_parent_with_too_much_leaves_no_child(shop: StepContext) -> None:
    work(
        with_limits(shop, max_members=2), send(shop, zip_file({f"{n}.txt": "x" for n in range(3)}))
    )
    assert states(shop) == {"a.zip": "failed"}


def test_a_long_name_is_cut_and_stays_its_own(shop: StepContext) -> None:
    parent = "p" * 1000 + ".zip"
    work(
        shop, send(shop, zip_file({"a" * 300 + ".txt": "one", "a" * 299 + "b.txt": "two"}), parent)
    )
    children = [name for name in shelf(shop) if name != parent]
    assert len(children) == 2
    assert all(len(name) <= 1024 and name.endswith(".txt") for name in children)


def test_what_came_within_a_document_is_of_its_batches(shop: StepContext) -> None:
    content = zip_file({"a.txt": "alpha", "b.txt": "beta"})
    digest = hashlib.sha256(content).hexdigest()
    submission = Submission("a.zip", "a.zip", "", digest, len(content), {}, batch="nightly")
    item = take_in(shop.ledger, shop.blobs, "shelf", submission, io.BytesIO(content), tenant="acme")
    work(shop, item)
    report = shop.ledger.batches.report("nightly")
    assert (report.submitted, report.left, report.states) == (3, 0, {"live": 3})
    shop.ledger.documents.delete(item.document_id)
    of_child = shop.ledger.batches.items("nightly")
    assert {found.state for found in of_child} == {"deleted"}
    for found in of_child:
        told = [e.kind for e in shop.ledger.events.of_document(found.document_id, after=0)]
        assert told[-1] == "document.deleted"


def test_a_hidden_child_waits_no_longer(shop: StepContext) -> None:
    item = send(shop, zip_file({"a.txt": "alpha"}))
    doing(shop)(item.document_id, item.version)
    assert shop.ledger.fair_queue.backlog(10) == 1
    shop.ledger.documents.delete(item.document_id)
    assert shop.ledger.fair_queue.backlog(10) == 0


def test_documents_that_lie_within_each_other_by_a_forged_archive_end(shop: StepContext) -> None:
    first, second = send(shop, b"one", "1.txt"), send(shop, zip_file({"a.txt": "x"}), "2.zip")
    ids = (first.document_id, second.document_id)
    with shop.ledger._database.writing() as connection:
        for mine, parent in (ids, ids[::-1]):
            connection.execute(
                update(schema.documents)
                .where(schema.documents.c.document_id == mine)
                .values(parent_id=parent, parent_version=1)
            )
    assert shop.ledger.child_documents.position(first.document_id).depth == 1
    work(shop, second)
    shop.ledger.documents.delete(first.document_id)
    assert shelf(shop) == {}
