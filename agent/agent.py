"""The agent: answers a question with citations. Independent of Celery and HTTP."""

import os
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from copy import copy
from typing import TYPE_CHECKING, Any

from callslip.agent.answer_text import answer_text
from callslip.agent.budget import Budgeted
from callslip.agent.citations import Citations
from callslip.agent.context import RunContext
from callslip.agent.conversations import Threads, reaching
from callslip.agent.graph import MOST_STEPS, make_graph
from callslip.agent.messages import Answer, AnswerRequest, Citation, SentenceMessage, Usage
from callslip.agent.reports import NodeReport
from callslip.agent.spans import answering
from callslip.agent.state import State, Turn, required
from callslip.config.settings import Settings
from callslip.errors import ThreadNotFound
from callslip.readers import Reader
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.run import count_not_in_force
from callslip.retrieval.tracing.recording import Learning

if TYPE_CHECKING:
    from callslip.models.telemetry import Spans

# Otherwise environment variables could make LangGraph send its data to LangSmith.
os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"

NEAREST = 5
"""The number of passages that are shown if there is no answer."""

MakeModel = Callable[[str, str], Budgeted | None]
"""Returns the language model for a collection and tenant; None if none is configured."""


class Agent:
    """Answers questions. Each process creates one instance after the fork; threads may share it."""

    def __init__(
        self,
        settings: Settings,
        resources: Resources,
        learning: Learning,
        threads: Threads,
        make_model: MakeModel,
        spans: "Spans | None" = None,
    ) -> None:
        self._settings, self._resources, self._learning = settings, resources, learning
        self._threads, self._make_model, self._spans = threads, make_model, spans
        self._alone = make_graph()
        self._talking = make_graph(threads.saver)

    def for_reader(self, reader: Reader | None) -> "Agent":
        """This agent as far as a reader may read."""
        limited = copy(self)
        limited._resources = self._resources.for_reader(reader)
        ledger = limited._resources.ledger
        limited._learning = self._learning.over(ledger)
        limited._threads = self._threads.over(ledger)
        return limited

    def answer(
        self,
        request: AnswerRequest,
        on_node: Callable[[NodeReport], None] = lambda report: None,
        on_sentence: Callable[[SentenceMessage], None] = lambda sentence: None,
        *,
        again: bool = False,
    ) -> Answer:
        """Answer a question; report each node, and each sentence once it is certain.

        With `again`, a question that is already in the conversation is answered after the turns
        before it, and the conversation does not change.

        Raises the errors of `retrieval.run.search`. If the language model fails, the rest of the
        run does without it, and the answer states the reason.
        """
        model = None
        if request.model:
            model = self._make_model(request.collection, request.tenant or "")
        context = RunContext(
            self._resources,
            self._learning,
            self._settings,
            model,
            self._spans,
            on_node,
            on_sentence,
        )
        start: Any = {"request": request}
        config: Any = {"recursion_limit": MOST_STEPS}
        options: dict[str, Any] = {}
        graph, key = self._alone, None
        with ExitStack() as after:
            if request.thread_id is not None and again:
                start["turns"] = self._turns_before(request, request.thread_id)
            elif request.thread_id is not None:
                scope = request.collection, request.tenant or "", request.thread_id
                after.enter_context(reaching())
                key = self._threads.open(*scope)
                after.callback(self._threads.settle, *scope, key)
                config["configurable"] = {"thread_id": key}
                graph, options = self._talking, {"durability": "exit"}
            describe = after.enter_context(answering(self._spans, request, key))
            fields = graph.invoke(start, config, context=context, **options)
            answer = composed(State(**fields), context)
            describe(answer)
        return answer

    def _turns_before(self, request: AnswerRequest, thread_id: str) -> list[Turn]:
        """The turns before the newest one with the request's question; without it, all."""
        try:
            _, turns = self._threads.turns(request.collection, request.tenant or "", thread_id)
        except ThreadNotFound:
            return []
        same = [turn["question"].split() == request.question.split() for turn in turns]
        return turns[: len(turns) - 1 - same[::-1].index(True)] if any(same) else turns


def composed(state: State, context: RunContext) -> Answer:
    """Return the answer of a state after all nodes have run."""
    request, question = required(state.request), required(state.question)
    verdict, response = required(state.verdict), required(state.response)
    words = answer_text(question.original, verdict, state.draft)
    timings: dict[str, float] = defaultdict(float)
    for report in state.reports:
        timings[report.node] += report.milliseconds
    return Answer(
        trace_id=response.trace_id,
        collection=request.collection,
        thread_id=request.thread_id,
        question=question.original,
        understood=question.text,
        answered=verdict.approved,
        text=words.text,
        sentences=list(words.sentences),
        citations=list(words.citations),
        nearest=[] if verdict.approved else _nearest(state, context),
        written_by="model" if verdict.approved and state.draft.by_model else "extracts",
        model_left_out=state.model_left_out,
        verdict=verdict,
        attempts=list(state.attempts),
        as_of=response.as_of,
        not_in_force=None if verdict.approved else _not_in_force(state, context),
        partial=response.partial,
        usage=context.model.usage if context.model else Usage(),
        timings={node: round(took, 3) for node, took in timings.items()},
    )


def _not_in_force(state: State, context: RunContext) -> int | None:
    searched = required(state.searched)
    its = searched.plan, searched.query, searched.retrieved
    return count_not_in_force(context.resources, *its)


def _nearest(state: State, context: RunContext) -> list[Citation]:
    """Return citations of the first passages of the last attempt, with their whole text."""
    hits = state.response.hits[:NEAREST] if state.response else []
    citations = Citations.of(hits, context.resources.backend)
    for hit in hits:
        citations.cite(hit, hit.span)
    return list(citations.all())
