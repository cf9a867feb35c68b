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

from callslip.agent import spans
from callslip.agent.context import RunContext
from callslip.agent.nodes.answerer import answerer
from callslip.agent.nodes.candidate_search import candidate_search
from callslip.agent.nodes.facet_planner import facet_planner
from callslip.agent.nodes.listener import listener
from callslip.agent.nodes.memory_updater import memory_updater
from callslip.agent.nodes.narrowed_search import narrowed_search
from callslip.agent.nodes.observer import observer
from callslip.agent.nodes.planner import planner
from callslip.agent.nodes.rerank_diversify import rerank_diversify
from callslip.agent.nodes.validator import validator
from callslip.agent.reports import NodeReport, Step
from callslip.agent.state import State

Node = Callable[[State, Runtime[RunContext]], Step]
Graph = CompiledStateGraph[State, RunContext, State, State]

NODES: dict[str, Node] = {
    node.__name__: node
    for node in (
        *(listener, planner, candidate_search, facet_planner, narrowed_search),
        *(rerank_diversify, answerer, validator, observer, memory_updater),
    )
}
"""The nodes by their names in specification 003 §7."""

ATTEMPT = ("planner", "candidate_search", "facet_planner", "narrowed_search", "rerank_diversify")

MOST_STEPS = 40
"""LangGraph's recursion limit: three attempts of seven nodes and three other nodes are 24."""


def make_graph(checkpointer: BaseCheckpointSaver[Any] | None = None) -> Graph:
    """Compile the graph; with a checkpointer it stores the turns of a conversation."""
    graph = StateGraph(State, context_schema=RunContext)
    for name, node in NODES.items():
        graph.add_node(name, observed(name, node))
    path = (START, "listener", *ATTEMPT, "answerer", "validator")
    for one, next_one in pairwise(path):
        graph.add_edge(one, next_one)
    graph.add_conditional_edges("validator", _after_verdict, ["planner", "observer"])
    graph.add_edge("observer", "memory_updater")
    graph.add_edge("memory_updater", END)
    return graph.compile(checkpointer=checkpointer)


def _after_verdict(state: State) -> str:
    return "planner" if state.verdict is not None and state.verdict.action else "observer"


def observed(name: str, node: Node) -> Any:
    """Wrap a node: measure its time, add its report to the update and call `on_node` with it."""

    def run(state: State, runtime: Runtime[RunContext]) -> dict[str, Any]:
        context, attempt = runtime.context, len(state.attempts)
        with spans.node(context.spans, name, attempt, state.request) as describe:
            started = time.perf_counter()
            update, facts = node(state, runtime)
            took = (time.perf_counter() - started) * 1000
            describe(facts, update)
        report = NodeReport(name, attempt, round(took, 3), facts)
        context.on_node(report)
        return {**update, "reports": (*state.reports, report)}

    run.__name__ = name
    return run
