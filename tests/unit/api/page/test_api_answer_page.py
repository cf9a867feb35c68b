"""Answers on the page and the passages that they cite; the way through the queue is replaced."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import pytest
from context_parts import app_over
from flask.testing import FlaskClient
from ledger_moves import publish, submit, taken, work
from page_parts import (
    HOSTILE,
    Tags,
    answers,
    assert_harmless,
    blobs_in,
    extracted,
    make_collection,
    of_a_page,
    shelved,
)

from callslip.agent.citations import Citations
from callslip.agent.messages import (
    Answer,
    AnswerRequest,
    AnswerSentence,
    Attempt,
    Citation,
    Conversation,
    NodeMessage,
    TurnMessage,
    Verdict,
)
from callslip.api.identity import guard
from callslip.api.page.answers import PageQuestion
from callslip.api.v1.answers import answering
from callslip.callers import Caller
from callslip.errors import AnswerTimeout, ThreadNotFound
from callslip.ingestion.artifacts import EXTRACTED
from callslip.ingestion.values import ExtractedText
from callslip.retrieval.messages import Hit, Legs, Pages, SearchRequest, Span, TimeClamp
from callslip.stores.ledger import Accepted, Ledger

LEAVE = "Leave lasts fourteen months."
TEXT = f"It is asked for early. {LEAVE} It is paid."
NOT_HERE = "No sure answer in these documents. The passages that came nearest are listed."


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Ledger]:
    with shelved(tmp_path) as made:
        yield make_collection(made)


@pytest.fixture
def client(filled: Ledger, tmp_path: Path) -> FlaskClient:
    return of_a_page(app_over(ledger=filled, blobs=blobs_in(tmp_path)).test_client())


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[SearchRequest]:
    return answers(monkeypatch)


@dataclass
class Agent:
    """Answers each question as it is told to, and remembers what it was asked."""

    answered: bool = True
    turns: list[TurnMessage] = field(default_factory=list)
    requests: list[AnswerRequest] = field(default_factory=list)
    again: list[bool] = field(default_factory=list)
    fails: bool = False

    def ask(self, _: object, request: AnswerRequest, *, again: bool = False) -> Answer:
        self.requests.append(request)
        self.again.append(again)
        if self.fails:
            raise AnswerTimeout("no answer within 60 s")
        return answer(request, answered=self.answered)

    def follow(self, context: object, request: AnswerRequest) -> Iterator[NodeMessage | Answer]:
        for node in ("listener", "planner", "answerer"):
            yield NodeMessage(node=node, attempt=0, milliseconds=1.0, facts={})
        yield self.ask(context, request)

    def look(self, _: object, collection: str, tenant: str, thread_id: str) -> Conversation:
        if not self.turns:
            raise ThreadNotFound("no such conversation")
        return Conversation(thread_id=thread_id, created_at=0, asked_at=0, turns=self.turns)


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Agent:
    made = Agent()
    for name in ("ask", "follow", "look"):
        monkeypatch.setattr(answering.agent, name, getattr(made, name))
    return made


def cited(text: str = f"{LEAVE} {HOSTILE}", title: str = f"Title {HOSTILE}") -> Citation:
    hit = Hit(
        rank=1,
        score=0.75,
        chunk_id="c1",
        document_id="d1",
        title=title,
        filename="a.txt",
        section="leave",
        heading="Leave",
        text=text,
        span=Span(start=0, end=len(text)),
        lang="en",
        properties={"valid_from": "2024-01-01T00:00:00Z"},
        legs=Legs(vector=None, keyword=None),
        level=1,
        parent_id=None,
        parent_of=None,
        vector=None,
    )
    citations = Citations({"d1": 2}, {"d1", "d2"})
    citations.cite(hit, hit.span)
    return citations.all()[0].model_copy(
        update={"pages": Pages(unit="page", first=3, last=3, labels=[])}
    )


def answer(request: AnswerRequest, *, answered: bool) -> Answer:
    verdict = Verdict(
        approved=answered,
        reason="supported" if answered else "not-covered",
        action=None,
        confidence=0.9 if answered else 0.1,
    )
    attempt = Attempt(trace_id="t", action=None, query="", hits=1, verdict=verdict)
    reply = [
        AnswerSentence(text=f"{LEAVE} {HOSTILE}", citations=[1]),
        AnswerSentence(text="Second sentence.", citations=[1]),
    ]
    return Answer(
        trace_id="trace-1",
        collection=request.collection,
        thread_id=request.thread_id,
        question=request.question,
        understood=f"{request.question.rstrip('?')} indeed?",
        answered=answered,
        text="as the sentences" if answered else NOT_HERE,
        sentences=reply if answered else [],
        citations=[cited()] if answered else [],
        nearest=[] if answered else [cited()],
        written_by="extracts",
        model_left_out="model-budget-spent" if answered else None,
        verdict=verdict,
        attempts=[attempt, attempt],
        as_of=TimeClamp(at=None, source="default", words=None),
        partial=False,
        usage={"calls": 0},
        timings={},
    )


def turn(question: str, understood: str = "") -> TurnMessage:
    return TurnMessage(
        question=question,
        understood=understood or question,
        text=f"An answer to {question}",
        answered=True,
        trace_id="t",
        at=0,
    )


def text_of(html: str) -> str:
    return " ".join(Tags(html).text.split())


def test_an_answer_is_shown_above_the_hits_with_what_it_rests_on(
    client: FlaskClient, agent: Agent, searches: list[SearchRequest]
) -> None:
    page = client.get("/?collection=papers&q=how+long+is+leave%3F&ask=1&as_of=2025-01-01")
    assert page.status_code == 200
    assert page.headers["Cache-Control"] == "no-store"
    assert agent.requests[0].question == "how long is leave?"
    assert agent.requests[0].as_of == "2025-01-01"
    assert searches[0].query == "how long is leave indeed?", "what was understood is searched"
    assert page.text.index('class="card answer') < page.text.index('class="hits"')
    text = text_of(page.text)
    assert "(in force since 2024-01-01)" in text
    assert text.count("(in force since") == 1, "said once, not with each sentence"
    assert "Understood as: how long is leave indeed?" in text
    assert "sure, about 9 of 10 such answers were right: the cited passages support it" in text
    assert "looked 2 times" in text
    assert "without the language model: model-budget-spent" in text
    assert "version 2" in text
    tags = assert_harmless(page.text)
    links = [a["href"] for tag, a in tags.tags if tag == "a" and a.get("class") == "cited"]
    assert links == ["#citation-1", "#citation-1"]
    assert any(a.get("id") == "citation-1" for _, a in tags.tags)
    reply = next(a for _, a in tags.tags if "data-trace" in a)
    assert reply["data-trace"] == "trace-1"
    scope = next(a["href"] for _, a in tags.tags if "version=2" in (a.get("href") or ""))
    assert scope is not None
    assert scope.startswith("/page/passage?document=d1&start=0")
    assert re.search(r'<a href="/page/passage\?document=d1&amp;[^"]+">p\. 3</a>', page.text)
    assert scope.endswith("#cited")
    assert "Ask further" not in page.text, "without a conversation nothing follows"


def test_only_who_may_give_feedback_is_offered_to(
    client: FlaskClient,
    agent: Agent,
    searches: list[SearchRequest],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for permissions, offered in ((("read",), False), (("read", "feedback"), True)):
        who = Caller("someone", "key", frozenset(permissions))
        monkeypatch.setattr(guard, "resolve", lambda *_, who=who: who)
        page = client.get("/?collection=papers&q=leave&ask=1").text
        assert LEAVE in page
        assert ("Not helpful" in page) == offered


@pytest.mark.parametrize(
    ("filename", "shown"),
    [("a.md", "Run <code>up</code> <strong>first</strong>."), ("a.txt", "Run `up` **first**.")],
)
def test_a_sentence_of_a_markdown_document_is_markup(filename: str, shown: str) -> None:
    request = AnswerRequest(collection="papers", question="how?")
    changes = {
        "sentences": [AnswerSentence(text="Run `up` **first**.", citations=[1])],
        "citations": [cited().model_copy(update={"filename": filename})],
    }
    made = answer(request, answered=True).model_copy(update=changes)
    (sentence,) = PageQuestion(request, "").shown(made).sentences
    assert sentence.text == shown


def test_where_nothing_answers_that_is_said_and_what_came_near_is_shown(
    client: FlaskClient, agent: Agent, searches: list[SearchRequest]
) -> None:
    agent.answered = False
    page = client.get("/?q=what+is+the+capital&ask=1").text
    assert_harmless(page)
    text = text_of(page)
    assert NOT_HERE in text
    assert "no passage seems to answer the question" in text
    assert "What came nearest" in text
    assert "Helpful" not in text


def test_a_korean_answer_is_qualified_in_korean(
    client: FlaskClient, agent: Agent, searches: list[SearchRequest]
) -> None:
    page = client.get(f"/?{urlencode({'q': '휴직은 얼마나 되나요?', 'ask': 1})}").text
    assert "(2024-01-01부터 시행)" in text_of(page)
    assert '<p class="running answer-text" lang="ko">' in page


def test_what_is_not_in_force_is_said_above_the_refusal(
    client: FlaskClient,
    agent: Agent,
    searches: list[SearchRequest],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    day = TimeClamp(at=datetime(2026, 11, 29, tzinfo=UTC), source="given", words=None)
    refused = answer(AnswerRequest(collection="papers", question="q?"), answered=False)
    refused = refused.model_copy(update={"as_of": day, "not_in_force": 1})
    monkeypatch.setattr(agent, "ask", lambda *_, **__: refused)
    monkeypatch.setattr(answering.agent, "ask", agent.ask)
    page = client.get("/?collection=papers&q=q%3F&ask=1&as_of=2026-11-29").text
    hint = (
        "Passages of 1 document are not in force on 2026-11-29; “any” in the option “In force on”"
    )
    assert text_of(page).count(f"{hint} includes them.") == 1
    assert page.index(hint) < page.index("card answer")
    assert searches[0].count_not_in_force
    assert "not in force" not in text_of(client.get("/?collection=papers&q=q").text)


def test_an_answer_that_does_not_come_leaves_the_hits(
    client: FlaskClient, agent: Agent, searches: list[SearchRequest]
) -> None:
    agent.fails = True
    page = client.get("/?q=leave&ask=1")
    assert page.status_code == 504
    assert AnswerTimeout.hint in page.text
    assert 'class="hits"' in page.text


@pytest.mark.parametrize("query", ["q=leave&thread=a%20b", "q=leave&alpha=much", "q=%3F"])
def test_what_cannot_be_asked_is_refused_on_the_page(
    client: FlaskClient, agent: Agent, searches: list[SearchRequest], query: str
) -> None:
    assert client.get(f"/?{query}&ask=1").status_code == 400
    assert not agent.requests


def test_waiting_for_answers_takes_the_places_that_the_api_has(
    client: FlaskClient,
    agent: Agent,
    searches: list[SearchRequest],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fields = {"q": "leave", "collection": "papers"}
    monkeypatch.setattr(answering._slots, "_taken", 10**6)
    assert client.get("/?q=leave&ask=1").status_code == 503
    assert client.post("/page/answer", data=fields).status_code == 503
    monkeypatch.setattr(answering._slots, "_taken", 0)
    with client.post("/page/answer", data=fields) as streamed:
        assert streamed.status_code == 200
        assert answering._slots._taken == 1
    assert answering._slots._taken == 0


def test_asking_is_told_stage_by_stage_and_ends_with_markup(
    client: FlaskClient, agent: Agent, searches: list[SearchRequest]
) -> None:
    agent.turns = [turn("what is leave?")]
    fields = {
        "q": "how long?",
        "collection": "papers",
        "ask": "1",
        "thread": "talk",
        "alpha": "0.5",
    }
    with client.post("/page/answer", data=fields) as streamed:
        assert streamed.content_type == "text/event-stream"
        output = re.findall(r"event: (\w+)\ndata: (.*)\n\n", streamed.text)
    assert [(kind, json.loads(data)) for kind, data in output[:-1]] == [
        ("stage", "searching"),
        ("stage", "checking"),
    ]
    assert output[-1][0] == "outcome"
    markup = json.loads(output[-1][1])
    assert markup.startswith('<div id="outcome">')
    tags = assert_harmless(markup)
    assert "An answer to what is leave?" in tags.text
    assert agent.requests[0].thread_id == "talk"
    hidden = {a["name"]: a["value"] for t, a in tags.tags if a.get("type") == "hidden"}
    assert hidden == {"collection": "papers", "thread": "talk", "alpha": "0.5"}


def test_a_conversation_opened_again_does_not_grow(
    client: FlaskClient, agent: Agent, searches: list[SearchRequest]
) -> None:
    agent.turns = [turn("how long is leave?"), turn("for twins?", "how long is leave for twins?")]
    page = client.get("/?q=for+twins%3F&ask=1&thread=talk")
    assert (agent.requests[0].question, agent.requests[0].thread_id) == ("for twins?", "talk")
    text = text_of(page.text)
    assert "An answer to how long is leave?" in text
    assert "An answer to for twins?" not in text, "it is answered below"
    assert "Ask further" in text
    assert "Understood as: how long is leave?" not in text, "those were its words"
    page = client.get("/?q=and+for+me%3F&ask=1&thread=talk")
    assert agent.requests[1].thread_id == "talk"
    assert agent.again == [True, False]
    assert "for twins? Understood as: how long is leave for twins? An answer" in text_of(page.text)


def live(filled: Ledger, text: str, tmp_path: Path) -> Accepted:
    """A second version of the document, its text under a name of its own."""
    item = submit(filled, text)
    filled.leases.finish(taken(filled, item), "second", {"n": 1})
    work(filled, item)
    upsert = taken(filled, item, "upsert")
    filled.leases.go_live(upsert, [], {"chunks": 0})
    parts = ExtractedText(text=text, media_type="text/plain")
    blobs_in(tmp_path).write(item.document_id, "second", EXTRACTED.dump(parts))
    return item


def passage(item: Accepted, **more: object) -> str:
    start = TEXT.index(LEAVE)
    scope = {"document": item.document_id, "start": 0, "end": len(TEXT), "version": 1}
    scope |= {"from": start, "to": start + len(LEAVE)}
    return f"/page/passage?{urlencode(scope | more)}"


def sentence(html: str) -> str | None:
    found = re.search(r'<mark class="sentence" id="cited">(.*?)</mark>(?!\s\w*<)', html, re.S)
    return found and re.sub("<[^>]*>", "", found[1])


def test_a_cited_sentence_is_marked_in_its_passage(
    client: FlaskClient, filled: Ledger, tmp_path: Path
) -> None:
    item = extracted(filled, TEXT, tmp_path)
    page = client.get(passage(item))
    assert page.status_code == 200
    assert sentence(page.text) == LEAVE
    assert TEXT in Tags(page.text).text
    assert "has changed" not in page.text
    page = client.get(passage(item, q="months"))
    assert f'id="cited">{LEAVE.replace("months", "<mark>months</mark>")}</mark>' in page.text


def test_a_sentence_of_an_older_version_is_shown_in_that_version(
    client: FlaskClient, filled: Ledger, tmp_path: Path
) -> None:
    item = extracted(filled, TEXT, tmp_path)
    live(filled, "All is new.", tmp_path)
    page = client.get(passage(item))
    assert page.status_code == 200
    assert "This is version 1; version 2 is live." in page.text
    assert sentence(page.text) == LEAVE
    next(tmp_path.rglob("extract-artifact")).unlink()
    page = client.get(passage(item))
    assert page.status_code == 200
    assert "is no longer kept" in page.text
    assert "All is new." in page.text
    assert "<mark" not in page.text


def test_a_version_with_the_very_same_text_is_no_change(
    client: FlaskClient, filled: Ledger, tmp_path: Path
) -> None:
    item = extracted(filled, TEXT, tmp_path)
    publish(filled, "only the bytes differ", ["c2"])
    page = client.get(passage(item)).text
    assert "has changed" not in page
    assert sentence(page) == LEAVE


@pytest.mark.long
@pytest.mark.parametrize(
    "wrong",
    [
        *({"from": 30, "to": 10}, {"from": -1}, {"to": 10**30}, {"from": "x"}, {"to": "9" * 5000}),
        *({"start": 50, "end": 20}, {"start": 10**9, "end": 10**9}, {"end": 10**30}),
        *({"start": 40}, {"version": 0}, {"version": -1}, {"version": 10**30}, {"version": ""}),
        {"start": 10_000, "end": 20_000, "from": 10_000, "to": 10_001},
    ],
)
def test_a_place_that_cannot_be_is_refused(
    client: FlaskClient,
    filled: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wrong: dict[str, object],
) -> None:
    page = client.get(passage(extracted(filled, TEXT, tmp_path), **wrong))
    assert page.status_code == 400
    assert "Invalid request" in page.text


def test_a_version_that_there_is_not_is_told(
    client: FlaskClient, filled: Ledger, tmp_path: Path
) -> None:
    item = extracted(filled, TEXT, tmp_path)
    page = client.get(passage(item, version=7))
    assert page.status_code == 404
    assert "has no version 7" in page.text


def test_the_text_of_a_version_is_served(
    client: FlaskClient, filled: Ledger, tmp_path: Path
) -> None:
    item = extracted(filled, TEXT, tmp_path)
    live(filled, "All is new.", tmp_path)
    path = f"/v1/documents/{item.document_id}/text"
    assert client.get(path).json["text"] == "All is new."
    assert client.get(f"{path}?version=1").json["text"] == TEXT
    assert client.get(f"{path}?version=3").status_code == 404
