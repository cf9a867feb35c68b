"""The agent: a question in, an answer with what supports it out. Knows no queue and no HTTP."""

import os
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from agent.budget import Budgeted
from agent.citing import Citations
from agent.graph import MOST_STEPS, make_graph
from agent.messages import Answer, AnswerRequest, Citation, Usage
from agent.run import NodeReport, Run
from agent.spans import answering
from agent.state import State, known
from agent.threads import Threads, reaching
from agent.wording import worded
from config.settings import Settings
from retrieval.engine import Engine
from retrieval.learning import Learning

if TYPE_CHECKING:
    from models.telemetry import Spans

# LangGraph would send what it sees to its makers' service, where the environment says so.
os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"

NEAREST = 5
"""Passages that are shown where nothing answered."""

MakeModel = Callable[[str, str], Budgeted | None]
"""The language model for a collection and tenant; None where none is set up."""


class Agent:
    """One per process, made after the fork. Threads may share it."""

    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        learning: Learning,
        threads: Threads,
        make_model: MakeModel,
        spans: "Spans | None" = None,
    ) -> None:
        self._settings, self._engine, self._learning = settings, engine, learning
        self._threads, self._make_model, self._spans = threads, make_model, spans
        self._alone = make_graph()
        self._talking = make_graph(threads.saver)

    def answer(
        self, request: AnswerRequest, on_node: Callable[[NodeReport], None] = lambda report: None
    ) -> Answer:
        """Answer a question; `on_node` hears of each node when it has run.

        Raises what a search raises. A language model that fails is left out, and the answer says
        so.
        """
        run = Run(self._engine, self._learning, self._settings, spans=self._spans, on_node=on_node)
        if request.model:
            run.model = self._make_model(request.collection, request.tenant or "")
        model = run.model
        given: Any = {"request": request}
        config: Any = {"recursion_limit": MOST_STEPS}
        options: dict[str, Any] = {}
        graph, key = self._alone, None
        with ExitStack() as after:
            if request.thread_id is not None:
                place = request.collection, request.tenant or "", request.thread_id
                after.enter_context(reaching())
                key = self._threads.open(*place)
                after.callback(self._threads.settle, *place, key)
                config["configurable"] = {"thread_id": key}
                graph, options = self._talking, {"durability": "exit"}
            told = after.enter_context(answering(self._spans, request, key))
            found = graph.invoke(given, config, context=run, **options)
            answer = composed(State(**found), run, model.usage if model else Usage())
            told(answer)
        return answer


def composed(state: State, run: Run, usage: Usage) -> Answer:
    """The answer that a state holds when all nodes have run."""
    request, question = known(state.request), known(state.question)
    verdict, response = known(state.verdict), known(state.response)
    said = worded(state)
    timings: dict[str, float] = defaultdict(float)
    for report in run.reports:
        timings[report.node] += report.milliseconds
    return Answer(
        trace_id=response.trace_id,
        collection=request.collection,
        thread_id=request.thread_id,
        question=question.asked,
        understood=question.text,
        answered=verdict.approved,
        text=said.text,
        sentences=list(said.sentences),
        citations=list(said.citations),
        nearest=[] if verdict.approved else _nearest(state, run),
        written_by="model" if verdict.approved and state.draft.by_model else "extracts",
        model_left_out=run.model_left_out,
        verdict=verdict,
        attempts=list(state.attempts),
        as_of=response.as_of,
        partial=response.partial,
        usage=usage,
        timings={node: round(took, 3) for node, took in timings.items()},
    )


def _nearest(state: State, run: Run) -> list[Citation]:
    """The first passages of the last attempt, whole."""
    hits = state.response.hits[:NEAREST] if state.response else []
    citations = Citations.of(hits, run.engine.ledger)
    for hit in hits:
        citations.cite(hit, hit.span)
    return list(citations.all())
