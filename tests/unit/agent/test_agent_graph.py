"""The graph of the agent: ten nodes, a loop that ends, and its drawing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_parts import Setup, make_setup
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.errors import GraphRecursionError
from openai_server import OpenAIServer, fails, reply

import callslip.agent.graph
import callslip.agent.messages
import callslip.agent.nodes.rerank_diversify
from callslip.agent.context import RunContext
from callslip.agent.graph import ATTEMPT, MOST_STEPS, NODES, make_graph
from callslip.agent.messages import Verdict
from callslip.agent.reports import NodeReport, Step
from callslip.agent.state import State
from callslip.config.sections.agent import AgentSettings
from callslip.models.embedders.none import LexicalEmbedder
from callslip.retrieval.evidence.sufficiency import BOTH, NONE, SMALL, WORDS_ALONE, Evidence
from tools.agent_graph import DOCUMENT, drawn, redrawn

pytest_plugins = ["openai_fixtures"]

ROUND = [*ATTEMPT, "answerer", "validator"]
END = ["observer", "memory_updater"]

SPECIFIED = [
    *("listener", "planner", "candidate_search", "facet_planner", "narrowed_search"),
    *("rerank_diversify", "answerer", "validator", "observer", "memory_updater"),
]
"""By specification 003 §7."""


def test_it_has_the_ten_nodes_of_the_specification() -> None:
    assert list(NODES) == SPECIFIED
    assert [n for n in make_graph().get_graph().nodes if not n.startswith("__")] == SPECIFIED


def test_only_the_validator_leads_back() -> None:
    edges = {(edge.source, edge.target) for edge in make_graph().get_graph().edges}
    order = ["__start__", *SPECIFIED, "__end__"]
    back = {(a, b) for a, b in edges if order.index(b) <= order.index(a)}
    assert back == {("validator", "planner")}
    assert len(edges) == len(order)


def test_the_drawing_in_the_documents_is_of_this_graph() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert drawn() in text, "docs/answers.md is stale: run `python -m tools.agent_graph`"
    assert redrawn(text) == text
    assert redrawn(text.replace("validator", "arbiter")).count("validator") >= 2


@pytest.fixture
def setup(tmp_path: Path, openai_server: OpenAIServer) -> Iterator[Setup]:
    """A setup without vectors that has a language model."""
    with make_setup(tmp_path, LexicalEmbedder(), server=openai_server) as made:
        made.put("leave.txt", "Parental leave lasts 20 weeks.", valid_from="2020-01-01")
        made.put("lunch.txt", "Lunch costs 6 euros.", "Guests pay 9 euros for lunch.")
        yield made


def test_a_supported_answer_goes_through_once(setup: Setup) -> None:
    setup.model = None
    assert setup.ask("lunch costs?").answered
    assert setup.nodes == ["listener", *ROUND, *END]


def test_what_is_not_there_is_searched_three_times_with_a_model(setup: Setup) -> None:
    assert setup.server
    setup.server.always = reply({"query": "winner of the world cup"})
    answer = setup.ask("Who won the world cup?")
    assert not answer.answered
    assert setup.nodes == ["listener", *ROUND, *ROUND, *ROUND, *END]
    assert [attempt.action for attempt in answer.attempts] == [None, "RELAX", "PIVOT"] or [
        attempt.action for attempt in answer.attempts
    ] == [None, "PIVOT", "RELAX"]
    assert [report.attempt for report in setup.reports if report.node == "planner"] == [0, 1, 2]


def test_what_is_not_there_is_searched_once_without_a_model(setup: Setup) -> None:
    answer = setup.ask("Who won the world cup?", model=False)
    assert not answer.answered
    assert setup.nodes == ["listener", *ROUND, *END]
    assert answer.verdict.action is None


def test_a_model_that_fails_while_it_rewords_is_the_last_attempt(setup: Setup) -> None:
    assert setup.server
    setup.server.always = fails(500)
    answer = setup.ask("Who won the world cup?")
    assert answer.model_left_out
    actions = [attempt.action for attempt in answer.attempts]
    assert actions[-1] == "PIVOT", "the attempt that called it"


@pytest.mark.parametrize("surer", [0.0, 0.05])
def test_a_later_attempt_is_approved_only_if_it_is_surer_than_the_first(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, surer: float
) -> None:
    assert setup.server
    sentences = ("Lunch costs 60 euros.", "Lunch costs 6 euros.")
    written = [
        {"answerable": True, "sentences": [{"text": s, "citations": [1]}]} for s in sentences
    ]
    setup.server.script[:] = [reply(written[0]), reply(written[1]), fails(500)]
    measured = iter([Evidence(0.9, 1.0, 0.3), Evidence(0.9 + surer, 1.0, 0.3), NONE])
    monkeypatch.setattr(
        callslip.agent.nodes.rerank_diversify, "evidence", lambda *_: next(measured)
    )
    answer = setup.ask("lunch costs?")
    first, second = answer.attempts[:2]
    assert (first.verdict.reason, second.action) == ("not-grounded", "DRILLDOWN")
    assert answer.answered == (second.verdict.confidence > first.verdict.confidence) == bool(surer)
    if not surer:
        assert second.verdict.reason == first.verdict.reason, "the first verdict stands"


NUMBER = st.floats(-2, 2, allow_nan=False)
WEIGHTS = st.sampled_from([BOTH, WORDS_ALONE, SMALL])
EVIDENCE = st.builds(Evidence, NUMBER, st.floats(0, 1), NUMBER, WEIGHTS)
CITED = st.lists(st.integers(-1, 9), max_size=3)
SAID = st.sampled_from(["Lunch costs 6 euros.", "Lunch costs 60 euros.", "", "…", "No."])
SENTENCES = st.lists(st.fixed_dictionaries({"text": SAID, "citations": CITED}), max_size=3)
REPLY = st.one_of(
    st.fixed_dictionaries({"answerable": st.booleans(), "sentences": SENTENCES}).map(reply),
    st.sampled_from([{"query": "meals"}, {"query": ""}, {"question": "lunch?"}, "", "no"]).map(
        reply
    ),
    st.just(fails(500)),
)
QUESTIONS = st.sampled_from(
    [
        "lunch costs?",
        "parental leave in 2019?",
        "Who won?",
        "휴가는?",
        "euros",
        "leave as of 2010-01-01",
    ]
)


@pytest.mark.long
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    found=st.lists(EVIDENCE, min_size=3, max_size=3),
    replies=st.lists(REPLY, max_size=6),
    question=QUESTIONS,
    loops=st.integers(0, 2),
    threshold=st.sampled_from([0.0, 0.3, 0.55, 1.0]),
    talks=st.booleans(),
)
def test_whatever_is_found_and_said_it_ends_after_three_attempts(
    setup: Setup,
    found: list[Evidence],
    replies: list[Any],
    question: str,
    loops: int,
    threshold: float,
    talks: bool,
) -> None:
    server = setup.server
    assert server
    server.script[:] = replies
    setup.change(agent=AgentSettings(max_iters=loops, confidence_threshold=threshold))
    left = iter(found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(callslip.agent.nodes.rerank_diversify, "evidence", lambda *_: next(left))
        answer = setup.ask(question, thread_id="t" if talks else None)
    assert setup.nodes.count("validator") == len(answer.attempts) <= loops + 1
    assert len(setup.nodes) <= 24 <= MOST_STEPS
    actions = [attempt.action for attempt in answer.attempts]
    assert len(set(actions)) == len(actions)
    assert all(attempt.verdict.action for attempt in answer.attempts[:-1])


def test_a_validator_gone_mad_is_stopped(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(state: State, runtime: Any) -> Step:
        verdict = Verdict(approved=False, reason="not-covered", action="RELAX", confidence=0.0)
        return Step({"verdict": verdict}, {})

    monkeypatch.setitem(callslip.agent.graph.NODES, "validator", again)
    reports: list[NodeReport] = []
    context = RunContext(setup.engine, setup.learning, setup.settings, on_node=reports.append)
    request = {"collection": "papers", "question": "lunch?"}
    given: Any = {"request": callslip.agent.messages.AnswerRequest(**request)}
    with pytest.raises(GraphRecursionError):
        make_graph().invoke(given, {"recursion_limit": MOST_STEPS}, context=context)
    assert len(reports) <= MOST_STEPS
