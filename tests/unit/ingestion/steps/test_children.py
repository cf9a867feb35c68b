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
from pipeline_parts import SETTINGS, doing, make_context, with_backend
from sqlalchemy import update

from callslip.ingestion.context import StepContext
from callslip.ingestion.intake import take_in
from callslip.ingestion.pipeline import run_step
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Accepted, DocumentRecord, Edit, Ledger, Submission
from callslip.stores.ledger.base import schema
from callslip.stores.records import CollectionSchema, VectorSpec


@pytest.fixture
def step_context(tmp_path: Path) -> Iterator[StepContext]:
    """A step context on a ledger and blobs of its own, with the collection `papers`."""
    schema = CollectionSchema("papers", VectorSpec(4), tenants=True)
    store = MemoryStore()
    store.ensure_schema(schema)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="")
        yield make_context(ledger, Blobs(str(tmp_path / "blobs")), store)


def send(
    step_context: StepContext, content: bytes, name: str = "a.zip", **properties: Any
) -> Accepted:
    """Submit bytes as the server does."""
    digest = hashlib.sha256(content).hexdigest()
    return take_in(
        step_context.ledger,
        step_context.blobs,
        "papers",
        Submission(name, name, "", digest, len(content), properties),
        io.BytesIO(content),
        tenant="acme",
    )


def work(step_context: StepContext, item: Accepted) -> None:
    """Do all steps of a version and of what it brings, as the workers do."""
    doing(step_context)(item.document_id, item.version)
    for child in step_context.ledger.fair_queue.take(math.inf):
        work(step_context, Accepted(child.document_id, child.version, fresh=True))


def documents_by_name(step_context: StepContext) -> dict[str, DocumentRecord]:
    """The documents that are there, by name."""
    return {d.name: d for d in step_context.ledger.documents.find("papers", limit=1000)}


def states(step_context: StepContext) -> dict[str, str]:
    return {
        name: document.state for name, document in sorted(documents_by_name(step_context).items())
    }


def failure(document: DocumentRecord) -> str | None:
    return document.newest.failure.type if document.newest.failure else None


def with_limits(step_context: StepContext, **limits: int) -> StepContext:
    extract = SETTINGS.extract.model_copy(update=limits)
    return with_backend(step_context, settings=SETTINGS.model_copy(update={"extract": extract}))


def test_the_files_of_a_zip_become_documents_that_know_their_parent(
    step_context: StepContext,
) -> None:
    item = send(
        step_context, zip_file({"docs/a.txt": "alpha words", "b.pdf": "no pdf"}), dept="law"
    )
    work(step_context, item)
    assert states(step_context) == {
        "a.zip": "live",
        "a.zip/b.pdf": "failed",
        "a.zip/docs/a.txt": "live",
    }
    child = documents_by_name(step_context)["a.zip/docs/a.txt"]
    assert (child.parent_id, child.tenant, child.newest.filename) == (
        item.document_id,
        "acme",
        "a.txt",
    )
    assert child.newest.properties == {"dept": "law"}
    assert failure(documents_by_name(step_context)["a.zip/b.pdf"]) == "broken-file"
    assert documents_by_name(step_context)["a.zip"].parent_id is None


def test_an_extract_step_that_is_repeated_makes_no_second_child(step_context: StepContext) -> None:
    class Killed(BaseException):
        pass

    class Dies:
        def __init__(self, leases: Any) -> None:
            self._leases = leases

        def __getattr__(self, name: str) -> Any:
            return getattr(self._leases, name)

        def finish_all(self, *given: Any) -> None:
            raise Killed

    item = send(step_context, zip_file({"a.txt": "alpha", "b.txt": "beta"}))
    whole, step_context.ledger.leases = step_context.ledger.leases, Dies(step_context.ledger.leases)  # type: ignore[assignment]
    with pytest.raises(Killed):
        run_step(step_context, "extract", item.document_id, 1)
    step_context.ledger.leases = whole
    before = {name: d.document_id for name, d in documents_by_name(step_context).items()}
    assert len(before) == 3
    step_context.ledger.leases.expire_all()
    work(step_context, item)
    assert {name: d.document_id for name, d in documents_by_name(step_context).items()} == before
    assert set(states(step_context).values()) == {"live"}
    assert all(d.newest.version == 1 for d in documents_by_name(step_context).values())


def test_a_new_version_keeps_what_stayed_and_deletes_what_vanished(
    step_context: StepContext,
) -> None:
    work(
        step_context,
        send(step_context, zip_file({"a.txt": "alpha", "b.txt": "beta", "c.txt": "gamma"})),
    )
    before = documents_by_name(step_context)
    second = send(step_context, zip_file({"a.txt": "alpha", "b.txt": "changed", "d.txt": "delta"}))
    for step in ("extract", "sectionize", "chunk", "enrich", "embed"):
        run_step(step_context, step, second.document_id, second.version)  # type: ignore[arg-type]
    assert "a.zip/c.txt" in documents_by_name(step_context), "until the new version is live"
    run_step(step_context, "upsert", second.document_id, second.version)
    work(step_context, second)
    after = documents_by_name(step_context)
    assert set(after) == {"a.zip", "a.zip/a.txt", "a.zip/b.txt", "a.zip/d.txt"}
    assert after["a.zip/a.txt"].newest.version == 1
    assert after["a.zip/b.txt"].live_version == 2
    assert step_context.ledger.documents.get(before["a.zip/c.txt"].document_id).state == "deleted"


def test_a_version_that_fails_deletes_nothing(step_context: StepContext) -> None:
    work(step_context, send(step_context, zip_file({"a.txt": "alpha"})))
    work(step_context, send(step_context, b"PK\x03\x04 broken"))
    assert states(step_context) == {"a.zip": "failed", "a.zip/a.txt": "live"}


def test_changed_properties_reach_the_children(step_context: StepContext) -> None:
    packed = zip_file({"a.txt": "alpha"})
    work(step_context, send(step_context, packed, year=2024))
    work(step_context, send(step_context, packed, year=2025))
    child = documents_by_name(step_context)["a.zip/a.txt"]
    assert (child.live_version, child.newest.properties) == (2, {"year": 2025})


def test_deleting_a_document_deletes_all_that_came_within_it(step_context: StepContext) -> None:
    inner = zip_file({"deep.txt": "deep"})
    item = send(step_context, zip_file({"inner.zip": inner, "a.txt": "alpha"}))
    work(step_context, item)
    assert "a.zip/inner.zip/deep.txt" in documents_by_name(step_context)
    step_context.ledger.documents.delete(item.document_id)
    assert documents_by_name(step_context) == {}
    assert len(step_context.ledger.sweep.unremoved(resend_seconds=0)) == 4


def test_a_child_that_was_deleted_by_itself_does_not_come_back(step_context: StepContext) -> None:
    item = send(step_context, zip_file({"a.txt": "alpha", "b.txt": "beta"}))
    work(step_context, item)
    step_context.ledger.documents.delete(documents_by_name(step_context)["a.zip/b.txt"].document_id)
    assert step_context.ledger.leases.reopen(item.document_id, 1, "extract")
    work(step_context, item)
    assert set(documents_by_name(step_context)) == {"a.zip", "a.zip/a.txt"}


def test_nor_with_an_edit_of_its_parent_but_with_another_file_that_has_it(
    step_context: StepContext,
) -> None:
    content = zip_file({"a.txt": "alpha", "b.txt": "beta"})
    item = send(step_context, content)
    work(step_context, item)
    step_context.ledger.documents.delete(documents_by_name(step_context)["a.zip/b.txt"].document_id)
    for number in range(2):
        edit = Edit(title=f"Box {number}")
        work(
            step_context,
            step_context.ledger.edits.make(item.document_id, edit, if_match=None).accepted,
        )
        assert set(documents_by_name(step_context)) == {"a.zip", "a.zip/a.txt"}
    for other in (zip_file({"c.txt": "gamma"}), content):
        work(step_context, send(step_context, other))
    assert set(documents_by_name(step_context)) == {"a.zip", "a.zip/a.txt", "a.zip/b.txt"}


def readers(step_context: StepContext) -> dict[str, bool]:
    """Which documents have readers, by name."""
    documents = documents_by_name(step_context).items()
    return {n: bool(step_context.ledger.readers.audience(d.document_id)) for n, d in documents}


def test_a_file_of_its_own_readers_keeps_them_when_its_parent_changes(
    step_context: StepContext,
) -> None:
    item = send(step_context, zip_file({"a.txt": "alpha", "b.txt": "beta"}))
    work(step_context, item)
    edits, inner = step_context.ledger.edits, documents_by_name(step_context)["a.zip/b.txt"]
    edits.make(inner.document_id, Edit(readers=("group:hr",)), if_match=None)
    restricted = {"a.zip": False, "a.zip/a.txt": False, "a.zip/b.txt": True}
    work(step_context, edits.make(item.document_id, Edit(title="Box"), if_match=None).accepted)
    assert readers(step_context) == restricted
    work(step_context, send(step_context, zip_file({"a.txt": "alpha", "b.txt": "beta 2"})))
    assert readers(step_context) == restricted


@pytest.mark.parametrize("again", [False, True], ids=["the same file", "another file"])
def test_readers_of_a_file_that_is_sent_again_are_those_of_the_files_in_it(
    step_context: StepContext, again: bool
) -> None:
    content = zip_file({"a.txt": "alpha", "b.txt": "beta"})
    work(step_context, send(step_context, content))
    other = zip_file({"a.txt": "alpha", "c.txt": "gamma"}) if again else content
    digest = hashlib.sha256(other).hexdigest()
    submission = Submission("a.zip", "a.zip", "", digest, len(other), {}, readers=("group:hr",))
    item = take_in(
        step_context.ledger,
        step_context.blobs,
        "papers",
        submission,
        io.BytesIO(other),
        tenant="acme",
    )
    assert all(readers(step_context).values())
    if again:
        work(step_context, item)
        assert readers(step_context) == dict.fromkeys(("a.zip", "a.zip/a.txt", "a.zip/c.txt"), True)


def test_nothing_comes_of_a_parent_that_was_deleted_meanwhile(step_context: StepContext) -> None:
    item = send(step_context, zip_file({"a.txt": "alpha"}))

    class Deleting:
        def extract(self, data: bytes, filename: str, fields: Any) -> Any:
            step_context.ledger.documents.delete(item.document_id)
            return step_context.extractor.extract(data, filename, fields)

    during = replace(step_context, extractor=Deleting())  # type: ignore[arg-type]
    assert run_step(during, "extract", item.document_id, 1) == "stop"
    assert documents_by_name(step_context) == {}


def test_a_document_of_the_same_name_is_left_alone(step_context: StepContext) -> None:
    own = send(step_context, b"my own words", "a.zip/a.txt")
    work(step_context, own)
    work(step_context, send(step_context, zip_file({"a.txt": "alpha"})))
    assert set(documents_by_name(step_context)) == {"a.zip", "a.zip/a.txt", "a.zip/a (2).txt"}
    assert documents_by_name(step_context)["a.zip/a.txt"].newest.version == 1


def test_children_arrive_with_an_archive_unless_their_parent_is_anothers(
    step_context: StepContext,
) -> None:
    work(step_context, send(step_context, zip_file({"a.txt": "alpha"})))
    snapshot = step_context.ledger.transcripts.read(
        documents_by_name(step_context)["a.zip/a.txt"].document_id
    )
    assert snapshot is not None
    given = snapshot.transcript
    assert (given.parent_id, given.parent_version) == (
        documents_by_name(step_context)["a.zip"].document_id,
        1,
    )
    lease = step_context.ledger.moves.take("papers", "memory", lease_seconds=60)
    for tenant, parent in (("acme", given.parent_id), ("other", None)):
        moved = replace(given, document_id=f"moved{tenant}", name="moved", tenant=tenant, chunks={})
        step_context.ledger.transcripts.write("papers", moved, lease)
        assert step_context.ledger.documents.get(moved.document_id).parent_id == parent


def test_whoever_submits_a_child_by_itself_makes_it_a_document_of_its_own(
    step_context: StepContext,
) -> None:
    item = send(step_context, zip_file({"a.txt": "alpha"}))
    work(step_context, item)
    work(step_context, send(step_context, b"my own words", "a.zip/a.txt"))
    assert documents_by_name(step_context)["a.zip/a.txt"].parent_id is None
    step_context.ledger.documents.delete(item.document_id)
    assert set(documents_by_name(step_context)) == {"a.zip/a.txt"}


def test_files_within_files_end_at_the_depth_that_is_allowed(step_context: StepContext) -> None:
    packed = b"alpha"
    for n in range(5):
        packed = zip_file({"a.txt" if n == 0 else "a.zip": packed})
    work(with_limits(step_context, max_depth=2), send(step_context, packed))
    found = documents_by_name(step_context)
    assert set(found) == {"a.zip", "a.zip/a.zip", "a.zip/a.zip/a.zip"}
    assert failure(found["a.zip/a.zip/a.zip"]) == "extraction-limit"
    assert found["a.zip"].state == "live"


def test_a_file_that_holds_itself_ends_at_once(
    step_context: StepContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A real ZIP that holds itself is a fixed point that nobody can write by hand: so the reader
    # is given one in its stead, by saying that the member is the archive.
    packed = zip_file({"a.txt": "alpha", "self.zip": "?"})

    class Holding:
        def extract(self, data: bytes, filename: str, fields: Any) -> Any:
            text = step_context.extractor.extract(data, filename, fields)
            if data != packed:
                return text
            digest = hashlib.sha256(packed).hexdigest()
            first, second = text.attachments
            again = replace(second, sha256=digest, size=len(packed), content=packed)
            return replace(text, attachments=(first, again))

    work(replace(step_context, extractor=Holding()), send(step_context, packed))  # type: ignore[arg-type]
    assert states(step_context) == {"a.zip": "live", "a.zip/a.txt": "live"}


@pytest.mark.long
def test_count_and_size_are_bounded_over_all_depths(step_context: StepContext) -> None:
    inner = {f"{n}.zip": zip_file({f"{n}-{m}.txt": f"{n} {m}" for m in range(4)}) for n in range(4)}
    work(with_limits(step_context, max_members=10), send(step_context, zip_file(inner)))
    found = documents_by_name(step_context)
    assert len(found) <= 11
    assert [failure(found[f"a.zip/{n}.zip"]) for n in range(4)].count("extraction-limit") == 3
    large = {f"{n}.zip": zip_file({"x.txt": b"x y " * 150_000}) for n in range(3)}
    work(with_limits(step_context, max_members_mb=1), send(step_context, zip_file(large), "b.zip"))
    found = documents_by_name(step_context)
    assert sum(f"b.zip/{n}.zip/x.txt" in found for n in range(3)) == 1


def test_a_parent_with_too_much_leaves_no_child(step_context: StepContext) -> None:
    work(
        with_limits(step_context, max_members=2),
        send(step_context, zip_file({f"{n}.txt": "x" for n in range(3)})),
    )
    assert states(step_context) == {"a.zip": "failed"}


def test_a_long_name_is_cut_and_stays_its_own(step_context: StepContext) -> None:
    parent = "p" * 1000 + ".zip"
    work(
        step_context,
        send(
            step_context, zip_file({"a" * 300 + ".txt": "one", "a" * 299 + "b.txt": "two"}), parent
        ),
    )
    children = [name for name in documents_by_name(step_context) if name != parent]
    assert len(children) == 2
    assert all(len(name) <= 1024 and name.endswith(".txt") for name in children)


def test_what_came_within_a_document_is_of_its_batches(step_context: StepContext) -> None:
    content = zip_file({"a.txt": "alpha", "b.txt": "beta"})
    digest = hashlib.sha256(content).hexdigest()
    submission = Submission("a.zip", "a.zip", "", digest, len(content), {}, batch="nightly")
    item = take_in(
        step_context.ledger,
        step_context.blobs,
        "papers",
        submission,
        io.BytesIO(content),
        tenant="acme",
    )
    work(step_context, item)
    report = step_context.ledger.batches.report("nightly")
    assert (report.submitted, report.left, report.states) == (3, 0, {"live": 3})
    step_context.ledger.documents.delete(item.document_id)
    of_child = step_context.ledger.batches.items("nightly")
    assert {found.state for found in of_child} == {"deleted"}
    for found in of_child:
        output = [
            e.kind for e in step_context.ledger.events.of_document(found.document_id, after=0)
        ]
        assert output[-1] == "document.deleted"


def test_a_hidden_child_waits_no_longer(step_context: StepContext) -> None:
    item = send(step_context, zip_file({"a.txt": "alpha"}))
    doing(step_context)(item.document_id, item.version)
    waiting = step_context.ledger.fair_queue.waiting().values()
    assert [work.documents for work in waiting] == [1]
    step_context.ledger.documents.delete(item.document_id)
    assert not step_context.ledger.fair_queue.waiting()


def test_documents_that_lie_within_each_other_by_a_forged_archive_end(
    step_context: StepContext,
) -> None:
    first, second = (
        send(step_context, b"one", "1.txt"),
        send(step_context, zip_file({"a.txt": "x"}), "2.zip"),
    )
    ids = (first.document_id, second.document_id)
    with step_context.ledger._database.writing() as connection:
        for mine, parent in (ids, ids[::-1]):
            connection.execute(
                update(schema.documents)
                .where(schema.documents.c.document_id == mine)
                .values(parent_id=parent, parent_version=1)
            )
    assert step_context.ledger.child_documents.position(first.document_id).depth == 1
    work(step_context, second)
    step_context.ledger.documents.delete(first.document_id)
    assert documents_by_name(step_context) == {}
