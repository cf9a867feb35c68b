"""What the graph itself costs: `python -m evals.overhead`.

The same questions are answered in turns by the agent, through LangGraph, and by its ten nodes
called one after the other, over the same store, ledger and embedder, without a language model.
Every second pair begins with the other one. A row is of questions that took so many attempts.
"""

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from langgraph.runtime import Runtime

from agent.agent import Agent, composed
from agent.graph import ATTEMPT, NODES, observed
from agent.messages import AnswerRequest, Usage
from agent.run import Run
from agent.state import State
from agent.threads import Threads, make_saver
from callslip.errors import CallslipError
from config.load import load
from config.settings import Settings
from evals.pipeline import COLLECTION, fill
from evals.stores.place import placed
from evals.stores.rows import Rows
from evals.tables import table
from models.registry import make_analyzer, make_embedder, make_recognizer
from retrieval.engine import Engine
from retrieval.learning import Learning
from stores.ledger import Ledger
from stores.ledger.database import Database
from stores.registry import make_store

STEPS = {name: observed(name, node) for name, node in NODES.items()}

CHUNKS, QUESTIONS, WARM_UP = 2_000, 120, 20


def main() -> None:
    """Measure and print Markdown; a failure prints what is wrong and exits with 1."""
    parser = argparse.ArgumentParser(prog="python -m evals.overhead", description=__doc__)
    parser.add_argument("--questions", type=int, default=QUESTIONS, metavar="N")
    options = parser.parse_args()
    try:
        with placed(load().settings, "chroma") as settings:
            run(settings, options.questions)
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


def run(settings: Settings, questions: int) -> None:
    """Fill a collection and ask it; prints Markdown."""
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
        engine = Engine(
            settings, ledger, lambda _: store, embedder, make_analyzer(), make_recognizer()
        )
        learning = Learning(ledger, settings.memory, settings.traces)
        threads = Threads(make_saver("", Path(folder)), ledger.conversations)
        took: dict[int, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        asked = [
            AnswerRequest.model_validate({"collection": COLLECTION, "question": question.terms})
            for question in rows.questions(questions + WARM_UP)
        ]
        for threshold in (0.0, 1.0):  # approved at once, and never
            how = settings.agent.model_copy(update={"confidence_threshold": threshold})
            set_so = settings.model_copy(update={"agent": how})
            agent = Agent(set_so, engine, learning, threads, lambda _collection, _tenant: None)
            for number, request in enumerate(asked):
                ways: list[tuple[str, Callable[[], int]]] = [
                    ("graph", partial(graphed, agent, request)),
                    ("calls", partial(called, request, engine, learning, set_so)),
                ]
                attempts = ways[1][1]()  # its vector and its candidates are kept then
                for name, way in ways if number % 2 else reversed(ways):
                    spent = _spent(way)
                    if number >= WARM_UP:
                        took[attempts][name].append(spent)
    lines = []
    for attempts, times in sorted(took.items()):
        graph, calls = (np.array(times[name]) for name in ("graph", "calls"))
        lines.append(
            (
                *(str(attempts), str(len(graph)), f"{np.median(calls[:, 0]):.1f}"),
                f"{np.median(graph[:, 0]):.1f}",
                *(f"{median:.2f}" for median in np.median(graph - calls, axis=0)),
            )
        )
    head = (
        *("attempts", "questions", "calls, ms", "graph, ms"),
        *("median of the difference, ms", "… of processor time, ms"),
    )
    print(table(head, lines))


def _spent(way: Callable[[], int]) -> Any:
    """Milliseconds on the clock and of the processor."""
    started = np.array([time.perf_counter(), time.process_time()])
    way()
    return (np.array([time.perf_counter(), time.process_time()]) - started) * 1000


def graphed(agent: Agent, request: AnswerRequest) -> int:
    """Answer by the graph; how many attempts it took."""
    return len(agent.answer(request).attempts)


def called(request: AnswerRequest, engine: Engine, learning: Learning, settings: Settings) -> int:
    """Answer by calling the nodes; how many attempts it took."""
    context = Run(engine, learning, settings)
    state, runtime = State(request=request), Runtime(context=context)

    def call(*names: str) -> None:
        for name in names:
            for field, value in STEPS[name](state, runtime).items():
                setattr(state, field, value)

    call("listener")
    while state.verdict is None or state.verdict.action:
        call(*ATTEMPT, "answerer", "validator")
    call("observer", "memory_updater")
    return len(composed(state, context, Usage()).attempts)


if __name__ == "__main__":
    main()
