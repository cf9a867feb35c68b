"""Searches are recorded beside the answers, and upkeep of what is learned."""

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from context_parts import LoneBroker, context_of, working
from learned import say, trace
from ledger_moves import publish
from processes import waits_until

from callslip.config.sections.ranking import MemorySettings, TracesSettings
from callslip.config.settings import Settings
from callslip.errors import StoreDown
from callslip.retrieval.tracing.recording import Learning
from callslip.retrieval.tracing.trace import Trace
from callslip.stores.ledger import Ledger
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.tasks import memory
from callslip.tasks.shared import recording
from callslip.tasks.shared.recording import Recorder

WEEK = 604_800.0


def test_every_trace_is_written_and_the_last_before_the_end() -> None:
    written: list[Trace] = []
    recorder = Recorder(written.extend)
    traces = [trace(f"q {n}", "a") for n in range(200)]
    assert all(recorder.put(each) for each in traces)
    recorder.close()
    assert written == traces


def test_traces_within_a_moment_are_one_transaction() -> None:
    batches: list[int] = []
    recorder = Recorder(lambda traces: batches.append(len(traces)))
    for _ in range(5):
        recorder.put(trace("q", "a"))
        time.sleep(recording.GATHER_SECONDS / 100)
    recorder.close()
    assert sum(batches) == 5
    assert len(batches) < 5


def test_leaving_a_trace_waits_for_nobody_and_too_many_are_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    go = threading.Event()
    recorder = Recorder(lambda _: go.wait(10) and None)
    made = trace("q", "a")
    start = time.perf_counter()
    kept = sum(recorder.put(made) for _ in range(recording.WAITING + 500))
    assert (time.perf_counter() - start) / (recording.WAITING + 500) < 0.001
    assert recording.WAITING <= kept <= recording.WAITING + recording.TOGETHER
    go.set()
    recorder.close()
    assert f"{recording.WAITING + 500 - kept} traces were dropped" in caplog.text


def test_a_ledger_that_does_not_answer_costs_these_traces_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    written: list[Trace] = []
    tried: list[Trace] = []

    def write(traces: Sequence[Trace]) -> None:
        tried.extend(traces)
        if traces[0].question.text == "bad":
            raise StoreDown("the ledger does not answer")
        if traces[0].question.text == "worse":
            raise ValueError("what of Mr Doe?")
        written.extend(traces)

    recorder = Recorder(write)
    for query in ("bad", "worse", "good"):
        recorder.put(trace(query, "a"))
        assert waits_until(lambda name=query: any(t.question.text == name for t in tried))
    recorder.close()
    assert [each.question.text for each in written] == ["good"]
    assert "the ledger does not answer" in caplog.text
    assert "Doe" not in caplog.text


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    made.create()
    made.collections.create(
        CollectionSchema("papers", VectorSpec(4)), store="", embedder="", analyzer=""
    )

    with working(context_of(Settings(), ledger=made, broker=LoneBroker())):
        yield made
    made.close()


def test_upkeep_fades_what_is_old_finds_the_centre_and_forgets_old_searches(ledger: Ledger) -> None:
    publish(ledger, "one", "abc")
    now = time.time()
    learning = Learning(ledger, MemorySettings(), TracesSettings())
    old = trace("old", "abc", at=now - 6 * WEEK)
    learning.record([old, *(trace(f"q {n}", "abc") for n in range(25))])
    say(ledger, old.trace_id, ["a"], now=now - 6 * WEEK)
    memory.maintain_memory()
    found = ledger.memory.of("papers", ["a"])["a"]
    assert found.utility == pytest.approx(0.5, abs=1e-3)
    assert found.useful == 1
    assert ledger.memory.scope("papers").questions == 26
    assert ledger.outcomes.of_trace(old.trace_id) == []
    assert ledger.searches.trim(0.0, 1000) == 0
