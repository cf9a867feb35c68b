"""When documents came in and passages changed, and `valid_from` where none is stated."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from memory_store import MemoryStore
from pipeline_parts import doing, look, make_context, paragraphs, submit

from callslip.ingestion.context import StepContext
from callslip.messages.options import Options
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Accepted, Ledger
from callslip.stores.levels import PASSAGE
from callslip.stores.records import ChunkRecord, CollectionSchema, VectorSpec, moment


@pytest.fixture
def step_context(tmp_path: Path) -> Iterator[StepContext]:
    """A step context with the collection `papers`."""
    store = MemoryStore()
    store.ensure_schema(CollectionSchema("papers", VectorSpec(4)))
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(
            CollectionSchema("papers", VectorSpec(4)), store="memory", embedder="tiny", analyzer=""
        )
        yield make_context(ledger, Blobs(str(tmp_path / "blobs")), store)


def ingest(step_context: StepContext, text: str, **properties: str) -> Accepted:
    item = submit(step_context, text, **properties)
    doing(step_context)(item.document_id, item.version)
    assert look(step_context, item).live_version == item.version
    return item


def stored(step_context: StepContext, item: Accepted) -> dict[str, ChunkRecord]:
    """The passages that are live, by their first word."""
    ids = sorted(step_context.ledger.chunks.live_ids(item.document_id))
    chunks = step_context.store_of("memory").get_chunks(
        "papers", ids, include_vector=True, include_terms=True
    )
    return {
        c.body.split()[0]: ChunkRecord(**c.__dict__)  # type: ignore[arg-type]
        for c in chunks
        if c.level == PASSAGE
    }


def submitted(step_context: StepContext, item: Accepted) -> str:
    version = step_context.ledger.documents.version(item.document_id, item.version)
    return moment(version.created_at)


def test_a_changed_passage_has_another_time_of_change_than_the_rest(
    step_context: StepContext,
) -> None:
    first = ingest(step_context, paragraphs("one", "two", "three"))
    second = ingest(step_context, paragraphs("one", "other", "three"))
    created = moment(look(step_context, first).created_at)
    passages = stored(step_context, second)
    assert {chunk.created_at for chunk in passages.values()} == {created}
    assert {word: chunk.updated_at for word, chunk in passages.items()} == {
        "one0": submitted(step_context, first),
        "other0": submitted(step_context, second),
        "three0": submitted(step_context, first),
    }
    third = ingest(step_context, paragraphs("one", "other", "three"), dept="law")
    times = {chunk.updated_at for chunk in stored(step_context, third).values()}
    assert times == {submitted(step_context, third)}, "a property has changed"


def test_new_readers_are_no_change_of_a_passage(step_context: StepContext) -> None:
    first = ingest(step_context, paragraphs("one", "two"))
    second = ingest(step_context, paragraphs("one", "two", "three"))
    before = {word: c.updated_at for word, c in stored(step_context, second).items()}
    step_context.ledger.readers.set(second.document_id, ("user:ann",))
    step_context.ledger.leases.reopen(second.document_id, second.version, "upsert")
    doing(step_context)(second.document_id, second.version, "upsert")
    passages = stored(step_context, second)
    assert all(c.properties for c in passages.values()), "they have an audience"
    assert {word: c.updated_at for word, c in passages.items()} == before
    assert before["one0"] == submitted(step_context, first) != before["three0"]


def test_passages_of_an_earlier_release_get_times_with_the_next_content(
    step_context: StepContext,
) -> None:
    item = ingest(step_context, paragraphs("one", "two"))
    store = step_context.store_of("memory")
    old = [
        ChunkRecord(**{**c.__dict__, "created_at": "", "updated_at": ""})
        for c in stored(step_context, item).values()
    ]
    store.batch_upsert_chunks("papers", old)
    again = ingest(step_context, paragraphs("one", "two", "three"))
    passages = stored(step_context, again)
    assert len(passages) == 3
    assert {c.created_at for c in passages.values()} == {
        moment(look(step_context, item).created_at)
    }
    assert {c.updated_at for c in passages.values()} == {submitted(step_context, again)}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, "today"),
        ({"valid_from": "2020-01-01"}, "2020-01-01"),
        ({"valid_to": "2100-01-01"}, "today"),
        ({"valid_to": "2020-01-01"}, None),
    ],
)
def test_what_states_no_first_day_is_in_force_since_it_came_in_if_the_collection_says_so(
    step_context: StepContext, properties: dict[str, str], expected: str | None
) -> None:
    item = ingest(step_context, paragraphs("before"), **properties)
    assert stored(step_context, item)["before0"].properties == properties
    options = Options.model_validate({"valid_from_default": "created_at"})
    step_context.ledger.collections.set_options("papers", options)
    item = ingest(step_context, paragraphs("after"), **properties)
    created = datetime.fromtimestamp(look(step_context, item).created_at, UTC)
    wanted = created.date().isoformat() if expected == "today" else expected
    assert stored(step_context, item)["after0"].properties.get("valid_from") == wanted
    (document,) = step_context.store_of("memory").get_documents("papers", [item.document_id])
    assert document.properties.get("valid_from") == wanted
    known = step_context.ledger.collections.property_names("papers")
    assert ("valid_from" in known) == (wanted is not None)
