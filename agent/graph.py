"""The graph: listener → planner → … → validator, back to the planner at most twice, then the end.

listener → planner → candidate_search → facet_planner → narrowed_search → rerank_diversify
              ↑                                                                 ↓
              └──────────── DRILLDOWN, RELAX, PIVOT ── validator ←──────── answerer
                                                           ↓
                                            observer → memory_updater
"""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from agent import spans
from agent.answerer import answerer
from agent.candidate_search import candidate_search
from agent.facet_planner import facet_planner
from agent.listener import listener
from agent.memory_updater import memory_updater
from agent.narrowed_search import narrowed_search
from agent.observer import observer
from agent.planner import planner
from agent.rerank_diversify import rerank_diversify
from agent.run import NodeReport, Run, Step
from agent.state import State
from agent.validator import validator

Node = Callable[[State, Runtime[Run]], Step]
Graph = CompiledStateGraph[State, Run, State, State]

NODES: dict[str, Node] = {
    node.__name__: node
    for node in (
        *(listener, planner, candidate_search, facet_planner, narrowed_search),
        *(rerank_diversify, answerer, validator, observer, memory_updater),
    )
}
"""By the names of specification 003 §7."""

ATTEMPT = ("planner", "candidate_search", "facet_planner", "narrowed_search", "rerank_diversify")

MOST_STEPS = 40
"""LangGraph's own limit: three attempts of seven nodes and three others are 24."""


def make_graph(checkpointer: BaseCheckpointSaver[Any] | None = None) -> Graph:
    """The graph, ready to run; with a checkpointer it remembers the turns of a conversation."""
    graph = StateGraph(State, context_schema=Run)
    for name, node in NODES.items():
        graph.add_node(name, observed(name, node))
    way = (START, "listener", *ATTEMPT, "answerer", "validator")
    for one, next_one in pairwise(way):
        graph.add_edge(one, next_one)
    graph.add_conditional_edges("validator", _after_verdict, ["planner", "observer"])
    graph.add_edge("observer", "memory_updater")
    graph.add_edge("memory_updater", END)
    return graph.compile(checkpointer=checkpointer)


def _after_verdict(state: State) -> str:
    return "planner" if state.verdict is not None and state.verdict.action else "observer"


def observed(name: str, node: Node) -> Any:
    """The node, timed; what it says of itself goes to the run."""

    def run(state: State, runtime: Runtime[Run]) -> dict[str, Any]:
        its, attempt = runtime.context, len(state.attempts)
        with spans.node(its.spans, name, attempt, state.request) as told:
            started = time.perf_counter()
            update, facts = node(state, runtime)
            took = (time.perf_counter() - started) * 1000
            told(facts, update)
        its.add(NodeReport(name, attempt, round(took, 3), facts))
        return update

    run.__name__ = name
    return run
