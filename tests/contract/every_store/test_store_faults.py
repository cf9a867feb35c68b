"""A passing fault on the wire, at any request of a document's steps, never fails it for good."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import Any, TypeVar

import pytest
from faulty_proxy import KINDS, Faults, faulty_proxy
from long_forms import sample
from pipeline_parts import SETTINGS, look, make_context, paragraphs, submit, with_backend

from callslip.config.settings import Settings
from callslip.errors import StoreDown
from callslip.ingestion.context import StepContext
from callslip.ingestion.pipeline import run_step
from callslip.stores.blobs import Blobs
from callslip.stores.chroma import connection as chroma
from callslip.stores.contract import Store
from callslip.stores.crate import connection as crate
from callslip.stores.fulltext import service
from callslip.stores.ledger import STEPS, Accepted, Ledger
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.stores.registry import make_store
from callslip.stores.weaviate import connection as weaviate

pytest_plugins = ["store_fixtures"]

T = TypeVar("T")

SECONDS = 0.3
"""The time limit of each request: a server on loopback answers within milliseconds."""

SAMPLE = 8
"""The faults of each store that `make test` injects."""

TRIES = 40
"""A connection that was lost is made again after a moment, at the latest after a second."""


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


@pytest.fixture(scope="module")
def faults() -> Faults:
    return Faults()


@pytest.fixture(scope="module", params=["chroma", "keyword", "weaviate", "crate"])
def faulty(request: pytest.FixtureRequest, faults: Faults) -> Iterator[Callable[[], Store]]:
    """What opens a store of each kind behind proxies, or one whose keyword index is behind one."""
    name_of = {"keyword": "served_keywords_at"}
    name = request.param
    settings: Settings = request.getfixturevalue(name_of.get(name, f"{name}_at"))
    section = getattr(settings, name)
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patched:
        patched.setattr(chroma, "REQUEST_SECONDS", SECONDS)
        for client in (chroma, service, weaviate, crate):
            patched.setattr(client, "PING_SECONDS", SECONDS)
        changed: dict[str, Any] = {}
        for address in ("url", "grpc_url"):
            if url := getattr(section, address, None):
                port = stack.enter_context(faulty_proxy(port_of(url), faults))
                changed[address] = f"http://127.0.0.1:{port}"
        if name != "chroma":
            changed["timeout_seconds"] = SECONDS
        section = section.model_copy(update=changed)
        kind = "chroma" if name == "keyword" else name
        yield lambda: make_store(settings.model_copy(update={name: section}), kind)


@pytest.fixture(scope="module")
def step_context(
    faulty: Callable[[], Store], faults: Faults, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StepContext]:
    """The context of steps, with the collection `faults`."""
    folder = tmp_path_factory.mktemp("faults")
    schema = CollectionSchema("faults", VectorSpec(4))
    with closing(Ledger(f"sqlite:///{folder / 'ledger.db'}")) as ledger, closing(faulty()) as store:
        ledger.create()
        eventually(lambda: store.ensure_schema(schema))
        ledger.collections.create(schema, store=store.kind, embedder="tiny", analyzer="")
        made = make_context(ledger, Blobs(str(folder / "blobs")), store)
        patient = SETTINGS.ingest.model_copy(update={"retry_base_seconds": 1e-6})
        yield with_backend(made, settings=SETTINGS.model_copy(update={"ingest": patient}))
        faults.begin()
        store.drop_collection("faults")


def prepared(step_context: StepContext, text: str) -> Accepted:
    """A new document, up to its last step."""
    item = submit(step_context, paragraphs(text), f"{text}.txt", collection="faults")
    for step in STEPS[:-1]:
        assert run_step(step_context, step, item.document_id, item.version) == "go on"
    return item


def upserts(step_context: StepContext, store: Store, item: Accepted) -> str:
    """Run the last step with this client; the document's state."""
    run_step(
        with_backend(step_context, store_of=lambda _: store),
        "upsert",
        item.document_id,
        item.version,
    )
    return look(step_context, item).state


def eventually(call: Callable[[], T]) -> T:
    """What a call of a store returns; a busy machine may need longer than SECONDS."""
    for _ in range(TRIES):
        with suppress(StoreDown):
            return call()
        time.sleep(0.1)
    return call()


def repeats(step_context: StepContext, store: Store, item: Accepted, state: str) -> str:
    """Repeat the last step while the document waits; its state."""
    for _ in range(TRIES):
        if state == "waiting":
            time.sleep(0.1)
            state = upserts(step_context, store, item)
    return state


@pytest.mark.long
@pytest.mark.timeout(3600)  # make test-all, on a busy machine
def test_a_fault_at_any_request_of_an_upsert_is_over_when_it_is_over(
    step_context: StepContext, faulty: Callable[[], Store], faults: Faults
) -> None:
    faults.begin()
    with closing(faulty()) as store:
        sound = prepared(step_context, "sound")
        state = upserts(step_context, store, sound)
        assert repeats(step_context, store, sound, state) == "live"
    every = [(kind, at) for kind in KINDS for at in range(faults.requests)]
    assert every
    bad = []
    for number, (kind, at) in enumerate(sample(every, SAMPLE)):
        item = prepared(step_context, f"text{number}")
        with closing(faulty()) as store:
            faults.begin(kind, at)
            state = upserts(step_context, store, item)
            faults.begin()
            failure = look(step_context, item).newest.failure
            state = repeats(step_context, store, item, state)
            if state != "live":
                steps = look(step_context, item).steps
                bad.append((kind, at, state, failure or steps[-1].failure))
                continue
            expected = step_context.ledger.chunks.live_ids(item.document_id)
            halves = eventually(partial(store.chunk_ids, "faults", item.document_id))
            assert halves == dict.fromkeys(halves, expected)
    assert not bad
