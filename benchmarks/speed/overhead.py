"""The cost of the graph itself: `python -m benchmarks.speed.overhead`.

The agent answers the questions through LangGraph, and the benchmark answers the same questions with
calls of the ten nodes one after the other. Both use the same store, ledger and embedder, without a
language model, and they take turns to be the first. The rows of the table are the approved and the
refused questions.
"""

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from langgraph.runtime import Runtime

from benchmarks.speed.pipeline import COLLECTION, fill
from benchmarks.stores.rows import Rows
from benchmarks.stores.scratch import placed
from callslip.agent.agent import Agent, composed
from callslip.agent.context import RunContext
from callslip.agent.conversations import Threads, make_saver
from callslip.agent.graph import ATTEMPT, NODES, observed
from callslip.agent.messages import AnswerRequest
from callslip.agent.state import State
from callslip.config.load import load
from callslip.config.settings import Settings
from callslip.errors import CallslipError
from callslip.evals.tables import table
from callslip.models.registry import make_analyzer, make_embedder, make_recognizer
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.backend import Backend
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Ledger
from callslip.stores.ledger.base.database import Database
from callslip.stores.registry import make_store

STEPS = {name: observed(name, node) for name, node in NODES.items()}

CHUNKS, QUESTIONS, WARM_UP = 2_000, 120, 20


def main() -> None:
    """Measure and print Markdown; after a failure, print the reason and exit with 1."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.overhead", description=__doc__
    )
    parser.add_argument("--questions", type=int, default=QUESTIONS, metavar="N")
    options = parser.parse_args()
    try:
        with placed(load().settings, "chroma") as settings:
            run(settings, options.questions)
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


def run(settings: Settings, questions: int) -> None:
    """Fill a collection, answer questions from it, and print Markdown."""
    embedder = make_embedder(settings)
    with (
        closing(make_store(settings, "chroma")) as store,
        closing(Ledger(settings.ledger_url)) as ledger,
        closing(Database(settings.ledger_url)) as database,
        tempfile.TemporaryDirectory() as folder,
    ):
        ledger.create()
        rows = Rows()
        fill(ledger, database, store, embedder.model, rows.chunks(CHUNKS), dated=False)
        engine = Resources(
            Backend(settings, ledger, Blobs(settings.blobs_url), lambda _: store),
            embedder,
            make_analyzer(),
            make_recognizer(),
        )
        learning = Learning(ledger, settings.memory, settings.traces)
        threads = Threads(make_saver("", Path(folder)), ledger.conversations)
        took: dict[bool, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        requests = [
            AnswerRequest.model_validate({"collection": COLLECTION, "question": question.terms})
            for question in rows.questions(questions + WARM_UP)
        ]
        for threshold in (0.0, 1.0):  # each question is approved, or refused
            how = settings.agent.model_copy(update={"confidence_threshold": threshold})
            set_so = settings.model_copy(update={"agent": how})
            agent = Agent(set_so, engine, learning, threads, lambda _collection, _tenant: None)
            for number, request in enumerate(requests):
                variants: list[tuple[str, Callable[[], bool]]] = [
                    ("graph", partial(graphed, agent, request)),
                    ("calls", partial(called, request, engine, learning, set_so)),
                ]
                approved = variants[1][1]()  # caches the question's vector and candidates
                for name, variant in variants if number % 2 else reversed(variants):
                    spent = _spent(variant)
                    if number >= WARM_UP:
                        took[approved][name].append(spent)
    lines = []
    for approved, times in sorted(took.items(), reverse=True):
        graph, calls = (np.array(times[name]) for name in ("graph", "calls"))
        lines.append(
            (
                *(
                    "approved" if approved else "refused",
                    str(len(graph)),
                    f"{np.median(calls[:, 0]):.1f}",
                ),
                f"{np.median(graph[:, 0]):.1f}",
                *(f"{median:.2f}" for median in np.median(graph - calls, axis=0)),
            )
        )
    head = (
        *("verdict", "questions", "calls, ms", "graph, ms"),
        *("median of the difference, ms", "… of processor time, ms"),
    )
    print(table(head, lines))


def _spent(variant: Callable[[], bool]) -> Any:
    """Return the milliseconds of wall time and of processor time."""
    started = np.array([time.perf_counter(), time.process_time()])
    variant()
    return (np.array([time.perf_counter(), time.process_time()]) - started) * 1000


def graphed(agent: Agent, request: AnswerRequest) -> bool:
    """Answer with the graph; return whether the answer is approved."""
    return agent.answer(request).answered


def called(
    request: AnswerRequest, engine: Resources, learning: Learning, settings: Settings
) -> bool:
    """Answer with calls of the nodes; return whether the answer is approved."""
    context = RunContext(engine, learning, settings)
    state, runtime = State(request=request), Runtime(context=context)

    def call(*names: str) -> None:
        nonlocal state
        for name in names:
            state = replace(state, **STEPS[name](state, runtime))

    call("listener")
    while state.verdict is None or state.verdict.action:
        call(*ATTEMPT, "answerer", "validator")
    call("observer", "memory_updater")
    return composed(state, context).answered


if __name__ == "__main__":
    main()
