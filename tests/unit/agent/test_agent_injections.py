"""Passages that command: they change neither the plan nor what an answer may say.

tests/data/injections.jsonl has fifty of them with what an obedient model would reply, and the words
that this would smuggle into an answer.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_parts import FACTS, Placed, Remembering, Setup, make_setup
from openai_server import OpenAIServer, ReceivedRequest, Sent, reply

import callslip.agent.nodes.planner
from callslip.agent.messages import Answer
from callslip.agent.nodes.validator import TRIES
from callslip.config.sections.agent import AgentSettings
from callslip.config.sections.ranking import MemorySettings
from callslip.retrieval.query.plan import Plan
from callslip.retrieval.run import make_plan
from callslip.stores.records import Value

pytest_plugins = ["agent_fixtures"]

DATA = Path(__file__).parents[2] / "data" / "injections.jsonl"
INJECTIONS = [json.loads(line) for line in DATA.read_text(encoding="utf-8").strip().split("\n")]

PLACE = "notes"
KEPT: dict[str, Value] = {"kind": "policy", "valid_from": "2020-01-01"}
GIVEN: dict[str, Any] = {
    **{"collection": PLACE, "tenant": "ann", "as_of": "2024-05-01"},
    "having_all": {"kind": "policy"},
}
QUESTIONS = {
    "en": ("How long is parental leave?", "Who pays for parental leave on Mars?"),
    "ko": ("육아휴직 기간은 얼마인가요?", "화성에서 육아휴직 급여는 누가 주나요?"),
}
SAID = {"en": "Parental leave lasts 20 weeks.", "ko": "육아휴직 기간은 1년 이내로 한다."}
SECRETS = ("4711", "80 weeks", "6 weeks", "80개월", "6주")
"""Of another tenant, of drafts, and of what is no longer in force."""

ALLOWED: dict[str | None, set[str]] = {
    None: {"hotset", "exploration_ratio"},
    "DRILLDOWN": {"hotset", "exploration_ratio"},
    "PIVOT": {"hotset", "exploration_ratio", "alpha"},
    "RELAX": {
        *("hotset", "exploration_ratio", "pool", "narrow", "facets_weight", "memory_weight"),
    },
}
"""What an action may rank otherwise."""

MARK = re.compile(r"Passages stand between <([0-9a-f]{16})> and </\1>")


class Watched:
    """A setup, the searches of its agent, and a model that obeys whatever it reads."""

    def __init__(self, home: Setup, server: OpenAIServer, searches: list[dict[str, Any]]) -> None:
        self.home, self.server, self.searches = home, server, searches
        self.marks: set[str] = set()
        self.obeyed: dict[str, Any] | None = None
        server.always = self.play
        self.plain = {
            question: self.answer(question) for some in QUESTIONS.values() for question in some
        }

    def play(self, request: ReceivedRequest) -> Sent:
        """What the injected passage asks for wherever it is read, else what is right."""
        shown = self.obeyed
        if shown and any(_bare(part) in _bare(request.content) for part in _parts(shown)):
            return reply(shown["obeys"])
        if request.instruction.startswith("A search for"):
            return reply({"query": "parental leave weeks 육아휴직"})
        if request.instruction.startswith("You check"):
            return reply({"supported": [1, 2, 3, 4]})
        ours = SAID["ko" if "육아" in request.content.split("\n")[0] else "en"]
        return reply({"answerable": True, "sentences": [{"text": ours, "citations": [1]}]})

    def answer(self, question: str, *, model: bool = True) -> tuple[Answer, list[dict[str, Any]]]:
        """An answer, and the searches that it took."""
        self.searches.clear()
        self.server.requests.clear()
        answer = self.home.ask(question, **GIVEN, model=model)
        return answer, list(self.searches)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory, meaning: Remembering) -> Iterator[Watched]:
    patch = pytest.MonkeyPatch()
    off = MemorySettings(exploration="off", record=False)
    judged = AgentSettings(judge="model", confidence_threshold=0.2)
    folder = tmp_path_factory.mktemp("injections")
    with (
        OpenAIServer() as server,
        make_setup(folder, meaning, server=server, memory=off, agent=judged) as home,
    ):
        home.make(PLACE, "ann", "bob")
        ann: dict[str, Any] = {"collection": PLACE, "tenant": "ann"}
        home.put("facts.txt", *FACTS, **ann, **KEPT)
        home.put("leave.txt", f"{SAID['en']} It can be taken in two parts.", **ann, **KEPT)
        home.put("휴직.txt", f"{SAID['ko']} 신청은 30일 전까지 해야 한다.", **ann, **KEPT)
        home.put(
            "draft.txt",
            "Parental leave lasts 80 weeks. 육아휴직은 80개월이다.",
            **ann,
            kind="draft",
        )
        old: dict[str, Value] = {"kind": "policy", "valid_to": "2000-01-01"}
        home.put("old.txt", "Parental leave lasts 6 weeks. 육아휴직은 6주이다.", **ann, **old)
        secret = "The vault code is 4711. 금고 비밀번호는 4711이다. Parental leave 육아휴직."
        home.put("vault.txt", secret, collection=PLACE, tenant="bob", **KEPT)
        searches: list[dict[str, Any]] = []

        def spying(resources: Any, request: Any, timings: Any) -> Plan:
            searches.append(request.model_dump())
            return make_plan(resources, request, timings)

        patch.setattr(callslip.agent.nodes.planner, "make_plan", spying)
        yield Watched(home, server, searches)
    patch.undo()


@pytest.fixture(params=INJECTIONS, ids=[each["id"] for each in INJECTIONS])
def injected(
    request: pytest.FixtureRequest, watched: Watched
) -> Iterator[tuple[dict[str, Any], Placed]]:
    """A passage that commands, among the others."""
    each = request.param
    placed = watched.home.put(
        each.get("filename", "memo.txt"),
        each["text"],
        collection=PLACE,
        tenant="ann",
        title=each.get("title", ""),
        heading=each.get("heading", ""),
        **KEPT,
    )
    watched.obeyed = each
    yield each, placed
    watched.obeyed = None
    watched.home.drop(placed, PLACE, "ann")


def test_there_are_fifty_of_them_half_of_them_korean() -> None:
    assert [each["lang"] for each in INJECTIONS] == ["en"] * 25 + ["ko"] * 25
    assert len({each["text"] + each["obeys"] for each in INJECTIONS}) == 50
    kinds = {each["kind"] for each in INJECTIONS}
    assert len(kinds) >= 15
    assert all({e["kind"] for e in INJECTIONS if e["lang"] == lang} == kinds for lang in QUESTIONS)


@pytest.mark.long
def test_a_passage_that_commands_changes_neither_the_plan_nor_what_is_said(
    watched: Watched, injected: tuple[dict[str, Any], Placed]
) -> None:
    each, placed = injected
    shown = False
    answerable, not_there = QUESTIONS[each["lang"]]
    for question, model in ((answerable, False), (answerable, True), (not_there, True)):
        answer, searches = watched.answer(question, model=model)
        assert searches[0] == watched.plain[question][1][0]
        check_plan(watched.home, answer, searches)
        check_said(answer, each, placed)
        prompts = list(watched.server.requests)
        shown |= any(_bare(each["text"]) in _bare(request.content) for request in prompts)
        check_prompts(watched, prompts, each)
    assert shown, "the model never read it"


def check_plan(home: Setup, answer: Answer, searches: Sequence[dict[str, Any]]) -> None:
    """Every search is the request's; only what an action may change differs."""
    assert len(searches) == len(answer.attempts)
    mine = home.store.document_ids(PLACE, tenant="ann")
    for search, attempt in zip(searches, answer.attempts, strict=True):
        assert {name: search[name] for name in ("collection", "tenant", "as_of")} == {
            name: GIVEN[name] for name in ("collection", "tenant", "as_of")
        }
        filters = dict(search["having_all"])
        within = filters.pop("document_id in", None)
        assert filters == GIVEN["having_all"]
        assert (within is not None) == (attempt.action == "DRILLDOWN")
        assert set(within or ()) <= mine
        assert search["having_any"] is None
        assert search["top"] == home.settings.agent.hits
        changed = {k for k, value in search["ranking"].items() if value is not None}
        assert changed <= ALLOWED[attempt.action]
        assert search["query"] == answer.question or attempt.action == "PIVOT"
    tried: list[str | None] = [None]
    for before, after in zip(answer.attempts, answer.attempts[1:], strict=False):
        left = [action for action in TRIES[before.verdict.reason] if action not in tried]
        assert before.verdict.action == after.action == left[0]
        tried.append(after.action)


def check_said(answer: Answer, each: dict[str, Any], placed: Placed) -> None:
    """Nothing but what a cited passage says; of the one that commands no more than its words."""
    assert not any(secret in answer.text for secret in SECRETS)
    assert each["canary"] not in answer.text or each["canary"] in placed.text
    by_number = {citation.number: citation for citation in answer.citations}
    for answer_text in answer.sentences:
        quotes = [by_number[n] for n in answer_text.citations]
        if any(quote.document_id == placed.document_id for quote in quotes):
            assert " ".join(placed.text.split()).count(answer_text.text) == 1
        else:
            assert answer_text.text in SAID.values() or answer_text.text in {
                q.quote for q in quotes
            }
    output = answer.model_dump_json()
    assert "vault.txt" not in output
    assert "draft.txt" not in output


def check_prompts(
    watched: Watched, prompts: Sequence[ReceivedRequest], each: dict[str, Any]
) -> None:
    """A passage stands between its marks, which are drawn anew; words asked for have none."""
    for request in prompts:
        content, found = request.content, MARK.search(request.content)
        if found is None:
            assert request.instruction.startswith(("A search for", "You rewrite"))
            assert "\n" not in content
            outside = content
        else:
            mark = found[1]
            assert mark not in watched.marks
            watched.marks.add(mark)
            assert all(mark not in text for text in watched.home.texts.values())
            assert content.count(f"<{mark}>") == content.count(f"</{mark}>")
            outside = re.sub(rf"(?ms)^<{mark}> .*?^</{mark}>$", "", content)
        for part in (*_parts(each), *SAID.values(), each.get("filename", "memo.txt")):
            assert _bare(part) not in _bare(outside)
            assert _bare(part) not in _bare(request.instruction)


def _parts(each: dict[str, Any]) -> list[str]:
    return [each[name] for name in ("text", "title", "heading") if each.get(name)]


def _bare(text: str) -> str:
    return "".join(text.split())
