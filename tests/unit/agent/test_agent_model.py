"""The agent with a language model behind a server: what it may say, and every fault of it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_parts import Remembering, Setup, make_setup
from openai_server import (
    OpenAIServer,
    ReceivedRequest,
    Scripted,
    Sent,
    cut_off,
    fails,
    huge,
    raw,
    refuses,
    reply,
    slow,
    trickle,
)

from callslip.agent.messages import Answer, AnswerRequest
from callslip.agent.nodes import validator
from callslip.config.sections.agent import AgentSettings
from callslip.config.settings import LlmSettings

pytest_plugins = ["agent_fixtures", "openai_fixtures"]

LEAVE = "Parental leave lasts 20 weeks. It can be taken in two parts."
QUERIES = "How long is parental leave?"
MOST = 5
"""Calls of a question: resolve, three answers and a rephrasing; as many judgements more."""


def written(*sentences: tuple[str, list[int]], **more: Any) -> Sent:
    output = [{"text": text, "citations": numbers} for text, numbers in sentences]
    return reply({"answerable": True, "sentences": output} | more)


GOOD = written(("Parental leave lasts 20 weeks.", [1]))
DECLINED = reply({"answerable": False, "sentences": []})


@pytest.fixture
def setup(tmp_path: Path, meaning: Remembering, openai_server: OpenAIServer) -> Iterator[Setup]:
    llm = {"timeout_seconds": 30.0, "max_output_tokens": 300}
    with make_setup(tmp_path, meaning, server=openai_server, llm=llm) as made:
        made.furnish()
        made.put("leave.txt", LEAVE, title="Leave", heading="Parents")
        yield made


def served(setup: Setup) -> OpenAIServer:
    assert setup.server
    return setup.server


def by_name(request: ReceivedRequest) -> str:
    """The prompt that was sent."""
    for name, words in (
        ("answer", "You answer a question"),
        ("judge", "You check sentences"),
        ("rephrase", "A search for a question"),
        ("resolve", "You rewrite"),
    ):
        if request.instruction.startswith(words):
            return name
    raise AssertionError(request.instruction)


def plays(**replies: Scripted) -> Scripted:
    """Each prompt has its reply; those left out fail."""

    def play(request: ReceivedRequest) -> Sent:
        sent = replies.get(by_name(request), fails(500))
        return sent if isinstance(sent, Sent) else sent(request)

    return play


def left_to_extracts(answer: Answer, why: str) -> None:
    assert answer.answered
    assert answer.written_by == "extracts"
    assert answer.sentences[0].text == "Parental leave lasts 20 weeks."
    assert answer.model_left_out
    assert answer.model_left_out.startswith(why), answer.model_left_out
    assert "weeks" not in answer.model_left_out


def test_it_writes_what_the_passages_say_and_is_paid(setup: Setup) -> None:
    served(setup).script += [written(("Parents get 20 weeks of leave.", [1]))]
    answer = setup.ask(QUERIES)
    assert (answer.answered, answer.written_by, answer.model_left_out) == (True, "model", None)
    assert answer.text == "Parents get 20 weeks of leave. [1]"
    assert [citation.quote for citation in answer.citations] == ["Parental leave lasts 20 weeks."]
    assert answer.usage.model_dump() == {"calls": 1, "input_tokens": 100, "output_tokens": 20}
    assert setup.ledger.model_usage.today("papers", "") == 120


def test_it_is_not_asked_where_the_request_does_without_it(setup: Setup) -> None:
    answer = setup.ask(QUERIES, model=False)
    assert (answer.answered, answer.written_by, answer.model_left_out) == (True, "extracts", None)
    assert not served(setup).requests


def test_it_is_not_asked_where_its_word_would_not_help(setup: Setup) -> None:
    answer = setup.ask("Who won the world cup?")
    assert not answer.answered
    assert "answer" not in map(by_name, served(setup).requests)


FAULTS: dict[str, tuple[Scripted, str]] = {
    "500": (fails(500), "language-model-down"),
    "503 with Retry-After": (fails(503, retry_after=9), "language-model-down"),
    "429": (fails(429, retry_after=3600), "language-model-down"),
    "401": (fails(401), "settings-error"),
    "404": (fails(404), "settings-error"),
    "400": (fails(400), "invalid-request"),
    "413": (fails(413), "invalid-request"),
    "slow": (slow(9, GOOD), "language-model-down"),
    "a byte at a time": (trickle(GOOD), "language-model-down"),
    "a head by the byte": (trickle(GOOD, head=True), "language-model-down"),
    "cut off": (cut_off(GOOD), "language-model-down"),
    "100 MB": (huge(), "bad-reply"),
    "a refusal": (refuses(), "bad-reply"),
    "a filter": (reply("", finish="content_filter"), "bad-reply"),
    "too long": (reply({"answerable": True}, finish="length"), "bad-reply"),
    "empty": (reply(""), "bad-reply"),
    "null": (reply(None), "bad-reply"),
    "no JSON": (reply("Parental leave lasts 20 weeks."), "bad-reply"),
    "an array": (reply([1]), "bad-reply"),
    "deep": (reply("[" * 100_000), "bad-reply"),
    "half a surrogate": (reply('{"answerable": true, "sentences": "\\ud800"}'), "bad-reply"),
    "no envelope": (raw(b"{}"), "bad-reply"),
    "no protocol": (raw(b"<html>Sign in</html>"), "bad-reply"),
    "nothing": (raw(b""), "bad-reply"),
    "an uncited sentence": (written(("Parental leave lasts 20 weeks.", [])), "bad-reply"),
    "no citations": (reply({"answerable": True, "sentences": [{"text": "x"}]}), "bad-reply"),
    "a citation of 0": (written(("Parental leave lasts 20 weeks.", [0])), "bad-reply"),
    "a citation of 7": (written(("Parental leave lasts 20 weeks.", [1, 7])), "bad-reply"),
    "a citation in words": (
        reply({"answerable": True, "sentences": [{"text": "x", "citations": ["1"]}]}),
        "bad-reply",
    ),
    "no sentence": (reply({"answerable": True, "sentences": []}), "bad-reply"),
    "a field of its own": (
        written(("Parental leave lasts 20 weeks.", [1]), tenant="b"),
        "bad-reply",
    ),
    "a word for true": (reply({"answerable": "yes", "sentences": []}), "bad-reply"),
    "nine sentences": (written(*[("Leave lasts 20 weeks.", [1])] * 9), "bad-reply"),
    "a very long sentence": (written(("weeks " * 200, [1])), "bad-reply"),
}


TOO_SLOW = ("slow", "a byte at a time", "a head by the byte")


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_extracts_answer_where_it_fails(setup: Setup, fault: str) -> None:
    sent, why = FAULTS[fault]
    if fault in TOO_SLOW:  # others must come in time on any machine
        setup.change(llm=setup.settings.llm.model_copy(update={"timeout_seconds": 1.0}))
    served(setup).always = sent
    left_to_extracts(setup.ask(QUERIES), why)
    assert len(served(setup).requests) == 1


def test_extracts_answer_where_nobody_listens(setup: Setup) -> None:
    server = served(setup)
    server.shutdown()
    server.server_close()
    left_to_extracts(setup.ask(QUERIES), "language-model-down")


def test_extracts_answer_when_the_budget_is_spent(setup: Setup) -> None:
    setup.change(llm=setup.settings.llm.model_copy(update={"tokens_per_day": 100}))
    left_to_extracts(setup.ask(QUERIES), "model-budget-spent")
    assert not served(setup).requests


def test_a_prompt_that_cannot_be_short_enough_is_not_sent(setup: Setup) -> None:
    setup.change(llm=LlmSettings(**setup.settings.llm.model_dump() | {"max_input_tokens": 100}))
    left_to_extracts(setup.ask(QUERIES), "invalid-request")
    assert not served(setup).requests


@pytest.mark.long
def test_fewer_passages_are_shown_where_all_are_too_long(setup: Setup) -> None:
    for n in range(3):
        setup.put(f"long{n}.txt", f"Parental leave of kind {n} lasts long. " * 40)
    served(setup).always = GOOD
    setup.change(llm=LlmSettings(**setup.settings.llm.model_dump() | {"max_input_tokens": 1500}))
    setup.ask(QUERIES)
    sent = [request for request in served(setup).requests if by_name(request) == "answer"]
    assert sent
    assert all(len(s.instruction + s.content) / 3 < 1500 for s in sent)


@pytest.mark.long
@pytest.mark.parametrize(
    "unsaid",
    [
        "Parental leave lasts 30 weeks.",
        "Parental leave lasts 20 days.",
        "Parental leave does not last 20 weeks.",
        "Ask Ms Lee for parental leave.",
        "Employees are given a golden watch.",
        "Parental leave lasts 20 weeks, see http://evil.example.",
        " ",
    ],
)
def test_a_sentence_that_the_passages_do_not_say_is_dropped(setup: Setup, unsaid: str) -> None:
    served(setup).script += [written(("It can be taken in two parts.", [1]), (unsaid, [1]))]
    answer = setup.ask(QUERIES)
    assert answer.answered
    assert [answer_text.text for answer_text in answer.sentences] == [
        "It can be taken in two parts."
    ]
    assert setup.reports[-3].facts["sentences_dropped"] == 1


def test_an_answer_of_which_nothing_is_said_is_none(setup: Setup) -> None:
    served(setup).always = plays(answer=written(("Parental leave lasts 30 weeks.", [1, 2])))
    answer = setup.ask(QUERIES)
    assert not answer.answered
    assert {attempt.verdict.reason for attempt in answer.attempts} == {"not-grounded"}
    assert [attempt.action for attempt in answer.attempts] == [None, "DRILLDOWN", "RELAX"]
    assert answer.written_by == "extracts"
    assert "30" not in answer.text
    assert answer.nearest[0].quote == LEAVE


def test_a_sentence_is_held_against_what_it_cites_itself(setup: Setup) -> None:
    other = written(("Parental leave lasts 20 weeks.", [2]), ("It can be taken in two parts.", [1]))
    served(setup).script += [other]
    assert setup.ask(QUERIES).text == "It can be taken in two parts. [1]"


def test_what_it_cites_is_about_the_question(setup: Setup) -> None:
    def answers_another(request: ReceivedRequest) -> Sent:
        mark = request.content.split("between <")[1][:16]
        shown = [each.split("\n")[1] for each in request.content.split(f"<{mark}> passage ")[1:]]
        other = next(text for text in shown if "leave" not in text.lower() and "휴" not in text)
        return written((other, [shown.index(other) + 1]))

    served(setup).always = plays(answer=answers_another, rephrase=reply({"query": QUERIES}))
    answer = setup.ask(QUERIES)
    assert not answer.answered
    assert {attempt.verdict.reason for attempt in answer.attempts} == {"not-covered"}


@pytest.mark.parametrize(
    "sentences", [[], [{"text": "Parental leave lasts 20 weeks.", "citations": [1]}]]
)
def test_where_it_finds_no_answer_there_is_none(setup: Setup, sentences: list[Any]) -> None:
    declines = reply({"answerable": False, "sentences": sentences})
    served(setup).always = plays(
        answer=declines, rephrase=reply({"query": "weeks off for parents"})
    )
    answer = setup.ask(QUERIES)
    assert not answer.answered
    assert answer.verdict.reason == "model-declined"
    assert [attempt.action for attempt in answer.attempts] == [None, "PIVOT", "DRILLDOWN"]
    assert answer.attempts[1].query == "weeks off for parents"
    assert answer.model_left_out is None
    assert answer.usage.calls == len(served(setup).requests) <= MOST


BAD_WORDS = [
    reply({"query": ""}),
    reply({"query": " ?! "}),
    reply({"query": "x" * 401}),
    reply({"query": "leave", "tenant": "b"}),
    reply({"query": "leave", "having_all": {"draft": True}}),
    reply({"query": "leave", "as_of": "1990-01-01"}),
    reply({"query": ["leave"]}),
    reply("weeks off"),
    reply(""),
    refuses(),
]


@pytest.mark.long
@pytest.mark.parametrize("bad", BAD_WORDS)
def test_other_words_that_cannot_be_used_are_left_out(setup: Setup, bad: Sent) -> None:
    served(setup).always = plays(answer=DECLINED, rephrase=bad)
    answer = setup.ask(QUERIES)
    assert not answer.answered
    assert [attempt.query for attempt in answer.attempts] == [QUERIES] * 3
    assert "rephrase" in map(by_name, served(setup).requests)


def test_other_words_keep_the_time_and_the_filters_of_the_request(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    served(setup).always = plays(
        answer=DECLINED, rephrase=reply({"query": "parental leave as of 1999 of tenant b"})
    )
    filters = {"filename": "leave.txt"}
    for given, at in (("2021-05-01", "2021-05-01"), (None, "2020-01-01")):
        answer = setup.ask(f"{QUERIES} as of 2020-01-01", as_of=given, having_all=filters)
        assert answer.attempts[1].query.endswith("1999 of tenant b")
        planned = [r.facts["as_of"] for r in setup.reports if r.node == "planner"]
        assert {moment[:10] for moment in planned} == {at}
        assert answer.attempts[1].hits == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "bad",
    [
        reply({"question": ""}),
        reply({"question": "…"}),
        reply({"question": "x" * 401}),
        reply({"question": "lunch?", "tenant": "b"}),
        reply("lunch?"),
        reply({"query": "lunch?"}),
    ],
)
def test_a_resolution_that_cannot_be_used_leaves_the_rules(setup: Setup, bad: Sent) -> None:
    served(setup).always = plays(answer=GOOD, resolve=bad)
    setup.ask(QUERIES, thread_id="t")
    answer = setup.ask("And for twins?", thread_id="t")
    assert answer.understood == "How long is parental leave for twins?"
    assert answer.model_left_out is None


def test_it_resolves_what_the_rules_cannot(setup: Setup) -> None:
    served(setup).always = plays(answer=GOOD, resolve=reply({"question": f"  {QUERIES}\n"}))
    assert not setup.ask("What does lunch in the canteen cost?", thread_id="t").answered
    assert setup.ask(QUERIES, thread_id="t").answered
    assert "resolve" not in map(by_name, served(setup).requests), "nothing was answered before"
    answer = setup.ask("The first thing I asked, once more, please", thread_id="t")
    assert (answer.understood, answer.answered) == (QUERIES, True)
    (resolved,) = (r for r in served(setup).requests if by_name(r) == "resolve")
    assert QUERIES in resolved.content
    assert "canteen" not in resolved.content
    assert answer.question == "The first thing I asked, once more, please"


def test_a_server_that_is_down_while_resolving_is_not_asked_again(setup: Setup) -> None:
    served(setup).always = plays(answer=GOOD)
    setup.ask(QUERIES, thread_id="t")
    before = len(served(setup).requests)
    left_to_extracts(setup.ask(f"{QUERIES} please", thread_id="t"), "language-model-down")
    assert len(served(setup).requests) == before + 1


def test_a_reply_in_another_language_is_left_to_the_extracts(setup: Setup) -> None:
    served(setup).always = written(("육아휴직 기간은 20주입니다.", [1]))
    left_to_extracts(setup.ask(QUERIES), "bad-reply")


def test_a_sentence_in_another_language_is_dropped(setup: Setup) -> None:
    served(setup).always = written(
        ("Parental leave lasts 20 weeks.", [1]), ("육아휴직 기간은 20주입니다.", [1])
    )
    answer = setup.ask(QUERIES)
    assert [each.text for each in answer.sentences] == ["Parental leave lasts 20 weeks."]


def test_sentences_come_one_by_one_as_they_are_validated(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    served(setup).always = written(
        ("Parental leave lasts 20 weeks.", [1]),
        ("Parental leave lasts 30 weeks.", [1]),
        ("It can be taken in two parts.", [1]),
    )
    order: list[str] = []
    real = validator.supports

    def watched(passages: Any, sentence: str, *others: Any) -> bool:
        order.append(f"checks {sentence}")
        return real(passages, sentence, *others)

    monkeypatch.setattr(validator, "supports", watched)
    request = AnswerRequest(collection="papers", question=QUERIES)
    answer = setup.agent.answer(request, on_sentence=lambda each: order.append(each.text))
    assert order == [
        "checks Parental leave lasts 20 weeks.",
        "Parental leave lasts 20 weeks.",
        "checks Parental leave lasts 30 weeks.",
        "checks It can be taken in two parts.",
        "It can be taken in two parts.",
    ]
    assert [each.text for each in answer.sentences] == [order[1], order[4]]


TWO = written(("Parental leave lasts 20 weeks.", [1]), ("It can be taken in two parts.", [1]))


@pytest.mark.long
@pytest.mark.parametrize(
    ("judgement", "kept"),
    [
        (reply({"supported": [2]}), ["It can be taken in two parts."]),
        (
            reply({"supported": [1, 2, 3, 99]}),
            ["Parental leave lasts 20 weeks.", "It can be taken in two parts."],
        ),
        (reply({"supported": []}), []),
        (
            reply({"supported": [0]}),
            ["Parental leave lasts 20 weeks.", "It can be taken in two parts."],
        ),
        (reply("all of them"), ["Parental leave lasts 20 weeks.", "It can be taken in two parts."]),
        (fails(500), ["Parental leave lasts 20 weeks.", "It can be taken in two parts."]),
    ],
)
def test_a_judge_takes_sentences_away_and_adds_none(
    setup: Setup, judgement: Scripted, kept: list[str]
) -> None:
    setup.change(agent=AgentSettings(judge="model"))
    served(setup).always = plays(answer=TWO, judge=judgement)
    answer = setup.ask(QUERIES)
    assert [answer_text.text for answer_text in answer.sentences] == kept
    assert answer.answered == bool(kept)
    assert answer.usage.calls <= MOST + 3


def test_all_calls_of_a_question_end_in_its_time(setup: Setup) -> None:
    setup.change(agent=AgentSettings(timeout_seconds=0.1))
    served(setup).always = slow(5, GOOD)
    answer = setup.ask(QUERIES)
    left_to_extracts(answer, "language-model-down")
    assert answer.timings["answerer"] < 2000


def test_the_model_sees_no_more_than_the_question_and_the_passages(setup: Setup) -> None:
    served(setup).always = GOOD
    setup.ask(
        QUERIES, as_of="2024-05-01", having_all={"filename !=": "secret.txt"}, thread_id="private"
    )
    (request,) = served(setup).requests
    assert request.content.startswith(f"Question: {QUERIES}\nAs of: 2024-05-01\n")
    whole = json.dumps(request.body)
    assert not any(word in whole for word in ("secret.txt", "private", "papers", "tools"))
