"""Answers of the agent without a language model: support, time, tenants, what is learned."""

import re
import threading
import unicodedata
from datetime import UTC, datetime
from typing import Any

import pytest
from agent_parts import Setup, make_setup
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from callslip.agent.answer_text import NO_PASSAGE, NOT_HERE, answer_text, in_words
from callslip.agent.citations import in_force
from callslip.agent.drafts import Draft, DraftSentence
from callslip.agent.messages import AnswerRequest, Citation, Verdict
from callslip.config.sections.agent import AgentSettings
from callslip.config.sections.ranking import MemorySettings
from callslip.errors import EmbedderDown, EmptyQuery, StoreDown, TenantNotFound
from callslip.models.embedders.none import LexicalEmbedder
from callslip.retrieval.messages import Span

pytest_plugins = ["agent_fixtures"]

LEAVE = "Parental leave lasts 20 weeks. It can be taken in two parts."
QUERIES = "How long is parental leave?"
NOT_THERE = "Who won the world cup?"
EN, KO = NOT_HERE["en"], NOT_HERE["ko"]


@pytest.fixture
def setup(home: Setup) -> Setup:
    """A setup with documents."""
    home.furnish()
    home.put("leave.txt", LEAVE, title="Leave")
    return home


@pytest.mark.long
def test_an_answer_is_a_sentence_of_a_document(setup: Setup) -> None:
    answer = setup.ask(QUERIES)
    assert answer.text == "Parental leave lasts 20 weeks. [1]"
    (cited,) = answer.citations
    assert (cited.quote, cited.title, cited.version) == (
        "Parental leave lasts 20 weeks.",
        "Leave",
        1,
    )
    assert (answer.written_by, answer.model_left_out) == ("extracts", None)
    assert answer.verdict.confidence >= setup.settings.agent.confidence_threshold


def test_an_entry_of_a_list_is_quoted_behind_what_announces_the_list(setup: Setup) -> None:
    text = (
        "The following persons are not entitled to the housing grant:\n\n"
        "- pensioners who live abroad for more than six months\n- students with a scholarship"
    )
    setup.put("grant.txt", text, title="Housing grant")
    answer = setup.ask("Are pensioners who live abroad entitled to the housing grant?")
    announcing, entry = answer.citations
    assert announcing.quote == "The following persons are not entitled to the housing grant:"
    assert "pensioners who live abroad" in entry.quote
    assert [s.citations for s in answer.sentences] == [[1], [2]]
    assert answer.text.startswith(f"{announcing.quote} [1] ")


@pytest.mark.parametrize(("question", "text"), [(NOT_THERE, EN), ("월드컵은 누가 이겼나요?", KO)])
def test_what_is_not_there_is_not_answered(setup: Setup, question: str, text: str) -> None:
    answer = setup.ask(question)
    assert (answer.answered, answer.text) == (False, text)
    assert len(answer.nearest) == 5
    assert [attempt.action for attempt in answer.attempts] == [None]


def test_only_another_document_is_a_reason_to_be_not_apart(home: Setup) -> None:
    home.change(agent=AgentSettings(confidence_threshold=1))
    home.put("one.txt", LEAVE, "Parental leave lasts long.")
    assert home.ask(QUERIES).verdict.reason == "not-covered"
    home.put("two.txt", "Parental leave lasts 30 weeks, as a paper says.")
    assert home.ask(QUERIES).verdict.reason == "not-apart"


def test_an_empty_collection_answers_nothing(home: Setup) -> None:
    answer = home.ask(QUERIES)
    assert (answer.text, answer.verdict.reason) == (NO_PASSAGE["en"], "no-passages")
    assert answer.nearest == []
    assert home.ask("월드컵은 누가 이겼나요?").text == NO_PASSAGE["ko"]
    assert [attempt.action for attempt in answer.attempts] == [None]


def test_decomposed_letters_and_wide_digits_ask_the_same(home: Setup) -> None:
    home.put("old.txt", "출산장려금은 100만원을 지급한다.", valid_to="2020-01-01")
    home.put("new.txt", "출산장려금은 200만원을 지급한다.", valid_from="2020-01-01")
    home.furnish()
    question = "2019년 기준 출산장려금은 얼마인가요?"
    wide = question.translate(str.maketrans("0129", "０１２９"))
    for written in (question, unicodedata.normalize("NFD", question), wide):
        answer = home.ask(written)
        assert answer.text.startswith("출산장려금은 100만원을 지급한다.")
        assert answer.understood == question


def test_a_follow_up_about_another_topic_is_not_answered_with_the_topic_before(
    home: Setup,
) -> None:
    home.furnish()
    home.put("leave.txt", "Parental leave lasts 20 weeks.", "Sick leave lasts 6 weeks.")
    home.put(
        "grant.txt", "출산장려금은 100만원을 지급한다. 쌍둥이는 출산장려금을 200만원 지급한다."
    )
    home.ask(QUERIES, thread_id="en")
    assert not home.ask("What about maternity leave?", thread_id="en").answered
    assert "20 weeks" not in home.ask("What about sick leave?", thread_id="en").text
    home.ask("출산장려금은 얼마인가요?", thread_id="ko")
    assert "200만원" in home.ask("쌍둥이는요?", thread_id="ko").text


def test_a_question_of_punctuation_is_refused(setup: Setup) -> None:
    with pytest.raises(ValidationError, match="no letter or digit"):
        setup.ask("?!")
    with pytest.raises(EmptyQuery) as raised:
        setup.agent.answer(AnswerRequest.model_construct(collection="papers", question="?!"))
    assert raised.value.advice == "Write at least one letter or digit."


def test_an_answer_is_of_the_version_that_is_live(setup: Setup) -> None:
    setup.put("leave.txt", "Parental leave lasts 30 weeks.")
    answer = setup.ask(QUERIES)
    assert answer.text == "Parental leave lasts 30 weeks. [1]"
    assert answer.citations[0].version == 2


WORDS = st.sampled_from(
    ["Leave", "lasts", "20", "weeks", ".", "lunch", "6", "euros", "휴직", "1년", "?", "\n", "- 1."]
)
PASSAGES = st.lists(st.lists(WORDS, min_size=1, max_size=9).map(" ".join), min_size=1, max_size=6)


@pytest.mark.long
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    PASSAGES, st.lists(WORDS, min_size=1, max_size=5).map(" ".join), st.sampled_from([0.0, 0.75])
)
def test_whatever_is_there_an_answer_has_support(
    tmp_path_factory: pytest.TempPathFactory, passages: list[str], question: str, least: float
) -> None:
    if not any(map(str.isalnum, question)):
        return
    folder = tmp_path_factory.mktemp("any")
    agent = AgentSettings(confidence_threshold=least)
    with make_setup(folder, LexicalEmbedder(), agent=agent) as made:
        for n, passage in enumerate(passages):
            made.put(f"{n}.txt", passage, *passages[:n])
        answer = made.ask(question)
        assert all(reply.text == " ".join(reply.text.split()) for reply in answer.sentences)


def test_a_question_names_the_time_that_it_asks_about(setup: Setup) -> None:
    setup.put("old.txt", "The parking fee is 3 euros.", valid_to="2020-01-01")
    setup.put("new.txt", "The parking fee is 5 euros.", valid_from="2020-01-01")
    assert setup.ask("What is the parking fee?").text == (
        "The parking fee is 5 euros. (in force since 2020-01-01) [1]"
    )
    for more in ({"as_of": "2019-05-01"}, {}):
        sent_request = (
            "What is the parking fee?" if more else "What was the parking fee as of 2019-05-01?"
        )
        answer = setup.ask(sent_request, **more)
        assert answer.text == "The parking fee is 3 euros. (in force until 2020-01-01) [1]"
        assert answer.as_of.at == datetime(2019, 5, 1, tzinfo=UTC)
        assert answer.as_of.source == ("given" if more else "understood")
    assert len(setup.ask("What is the parking fee?", as_of="any").attempts) >= 1


@pytest.mark.parametrize(
    ("filename", "text", "question", "other"),
    [
        (
            "boilers.md",
            "| Boiler | Water tank |\n|---|---|\n| X100 | 1.2 litres |\n| X200 | 1.8 litres |\n",
            "How big is the water tank of the boiler X200?",
            "How big is the water tank of the boiler X300?",
        ),
        (
            "grant.txt",
            "The housing grant is 500 euros. It is paid for flats that are rented from 2026 on.",
            "How much was the housing grant in 2026?",
            "How much was the housing grant in 2024?",
        ),
        (
            "shop.txt",
            "The telephone number of the harbour shop is 0161 555 0110. It has tents.",
            "What is the telephone number of the harbour shop?",
            "What is the e-mail address of the harbour shop?",
        ),
    ],
)
def test_what_a_question_names_is_not_answered_with_another_one(
    setup: Setup, filename: str, text: str, question: str, other: str
) -> None:
    setup.put(filename, text)
    assert setup.ask(question).answered
    refused = setup.ask(other)
    assert (refused.answered, refused.verdict.reason) == (False, "not-covered")


def test_a_heading_of_markdown_is_no_answer(setup: Setup) -> None:
    text = "# Gym\n\nThe gym is new.\n\n## Membership fees\n\nThe fees are 30 euros a month."
    setup.put("gym.md", text)
    answer = setup.ask("What are the membership fees of the gym?")
    assert [each.quote for each in answer.citations] == ["The fees are 30 euros a month."]


def test_a_heading_answers_when_and_a_section_of_another_version_does_not(setup: Setup) -> None:
    text = (
        "# Lumen release notes\n\n## 4.1.0 (2025-11-05)\n\nNew: dark mode. The old export will be"
        " removed in version 5.0.\n\n## 4.0.0 (2025-06-17)\n\nThe import of CSV files was removed."
    )
    setup.put("notes.md", text)
    when = setup.ask("When was Lumen 4.0.0 released?")
    assert [each.quote for each in when.citations] == ["4.0.0 (2025-06-17)"]
    what = setup.ask("What was removed in Lumen 4.0.0?")
    assert [each.quote for each in what.citations] == ["The import of CSV files was removed."]


@pytest.mark.parametrize(
    ("question", "old", "new", "text"),
    [
        (
            "What is the parking fee?",
            "The parking fee is 3 euros.",
            "The parking fee is 5 euros.",
            {
                "The parking fee is 3 euros. (in force until 2020-01-01)",
                "The parking fee is 5 euros. (in force since 2020-01-01)",
            },
        ),
        (
            "주차 요금은 얼마인가요?",
            "주차 요금은 3천 원이다.",
            "주차 요금은 5천 원이다.",
            {
                "주차 요금은 3천 원이다. (2020-01-01 전까지 시행)",
                "주차 요금은 5천 원이다. (2020-01-01부터 시행)",
            },
        ),
    ],
)
def test_two_documents_that_contradict_are_both_shown_with_their_dates(
    setup: Setup, question: str, old: str, new: str, text: set[str]
) -> None:
    setup.put("old.txt", old, valid_to="2020-01-01")
    setup.put("new.txt", new, valid_from="2020-01-01")
    answer = setup.ask(question, as_of="any")
    assert {part.strip() for part in re.split(r"\[\d\]", answer.text)} == {*text, ""}
    assert {citation.quote for citation in answer.citations} == {old, new}


def test_what_is_no_longer_in_force_is_no_answer(setup: Setup) -> None:
    setup.put("old.txt", "The parking fee is 3 euros.", valid_to="2020-01-01")
    answer = setup.ask("What is the parking fee?")
    assert not answer.answered
    assert not any("parking fee" in citation.quote for citation in answer.nearest)
    assert answer.not_in_force == 1
    assert setup.ask("What is the parking fee?", as_of="2020-01-01").answered is False
    right = setup.ask("What is the parking fee?", as_of="2019-12-31")
    assert (right.answered, right.not_in_force) == (True, None)


def test_a_cited_passage_that_is_not_in_force_is_refused(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should a store have let it through."""
    monkeypatch.setattr(
        "callslip.retrieval.query.plan.filter_known_validity", lambda where, *_: where
    )
    setup.put("old.txt", "The parking fee is 3 euros.", valid_to="2020-01-01")
    answer = setup.ask("What is the parking fee?")
    assert not answer.answered
    assert [attempt.verdict.reason for attempt in answer.attempts] == ["not-in-force"] * 2
    assert [attempt.action for attempt in answer.attempts] == [None, "RELAX"]


def cited(since: str | None = None, until: str | None = None) -> Citation:
    day = {"valid_from": since, "valid_to": until}
    return Citation(
        **{"number": 1, "chunk_id": "c", "document_id": "d", "version": 1, "title": ""},
        **{"filename": "", "section": "", "heading": "", "quote": "", "url": ""},
        **{"span": Span(start=0, end=0), "passage": Span(start=0, end=0)},
        **{
            name: value and datetime.fromisoformat(f"{value}T00:00Z") for name, value in day.items()
        },
    )


@pytest.mark.parametrize(
    ("since", "until", "english", "korean"),
    [
        (None, None, "", ""),
        ("2020-01-01", None, "in force since 2020-01-01", "2020-01-01부터 시행"),
        (None, "2021-02-03", "in force until 2021-02-03", "2021-02-03 전까지 시행"),
        (
            "2020-01-01",
            "2021-02-03",
            "in force from 2020-01-01 until 2021-02-03",
            "2020-01-01부터 2021-02-03 전까지 시행",
        ),
    ],
)
def test_the_time_of_a_passage_in_words(
    since: str | None, until: str | None, english: str, korean: str
) -> None:
    assert in_words(cited(since, until), "en") == english
    assert in_words(cited(since, until), "ko") == korean


def test_a_time_is_told_once_and_citations_are_numbered_as_they_come() -> None:
    same = [cited("2020-01-01").model_copy(update={"number": n}) for n in (1, 2, 3)]
    sentences = [
        DraftSentence(text, n) for text, n in (("하나.", (3,)), ("둘.", (1, 3)), ("셋.", (3,)))
    ]
    draft = Draft(tuple(sentences), tuple(same))
    approved = Verdict(approved=True, reason="supported", action=None, confidence=1)
    words = answer_text("기간은?", approved, draft)
    assert words.text == "하나. (2020-01-01부터 시행) [1] 둘. [2][1] 셋. [1]"
    assert [citation.number for citation in words.citations] == [1, 2]
    assert answer_text("기간은?", None, draft).text == KO


MOMENTS = st.none() | st.sampled_from([f"20{n}-01-01" for n in range(10, 30)])


@given(MOMENTS, MOMENTS, MOMENTS)
def test_in_force_is_from_its_beginning_to_before_its_end(
    since: str | None, until: str | None, at: str | None
) -> None:
    moment = at and datetime.fromisoformat(f"{at}T00:00Z")
    expected = not at or ((since or "") <= at and (until or "3") > at)
    assert in_force(cited(since, until), moment or None) == expected


def test_a_tenant_sees_only_its_own(home: Setup) -> None:
    home.make("notes", "ann", "bob")
    for tenant, weeks in (("ann", 20), ("bob", 30)):
        home.put("a.txt", f"Parental leave lasts {weeks} weeks.", collection="notes", tenant=tenant)
        home.put("b.txt", "Lunch costs 6 euros.", "It rains.", collection="notes", tenant=tenant)
    home.put("c.txt", "Dinner costs 9 euros.", collection="notes", tenant="bob")
    for tenant, weeks in (("ann", 20), ("bob", 30)):
        answer = home.ask(QUERIES, "notes", tenant=tenant, having_any={"filename !=": "x"})
        shown = [*answer.citations, *answer.nearest]
        mine = home.store.document_ids("notes", tenant=tenant)
        assert {citation.document_id for citation in shown} <= mine
        assert f"{weeks} weeks" in " ".join(citation.quote for citation in shown)
    answer = home.ask("What does dinner cost?", "notes", tenant="ann")
    assert not any("Dinner" in c.quote for c in [*answer.citations, *answer.nearest])
    with pytest.raises(TenantNotFound):
        home.ask(QUERIES, "notes", tenant="eve")


def test_conversations_of_one_name_are_apart(home: Setup) -> None:
    home.make("notes", "ann", "bob")
    home.make("other")
    for scope in ({"collection": "notes", "tenant": "ann"}, {"collection": "other"}):
        home.put("a.txt", LEAVE, **scope)
        home.ask(QUERIES, thread_id="t", **scope)
    later = home.ask("And for twins?", "notes", tenant="ann", thread_id="t")
    assert later.understood == "How long is parental leave for twins?"
    for scope in ({"collection": "notes", "tenant": "bob"}, {"collection": "papers"}):
        assert home.ask("And for twins?", thread_id="t", **scope).understood == "And for twins?"
    assert len(home.threads.turns("notes", "ann", "t")[1]) == 2
    assert len(home.threads.turns("other", "", "t")[1]) == 1
    assert len(home.threads.turns("notes", "bob", "t")[1]) == 1


def remembered(setup: Setup) -> dict[str, int]:
    """How often passages are remembered to have helped."""
    return {stats.chunk_id: stats.useful for stats in setup.ledger.memory.best("papers")}


def test_approved_answers_teach_exactly_what_they_cite_once_two_askers_agree(setup: Setup) -> None:
    placed = setup.put("gym.txt", "The sauna opens at 18:30 on weekdays.", "Towels cost 2 euros.")
    answer = setup.ask("When does the sauna open?", user="eve")
    cited = {citation.chunk_id for citation in answer.citations}
    assert cited == {placed.chunk_ids[0]}
    (outcome,) = setup.ledger.outcomes.of_trace(answer.trace_id)
    assert (outcome.verdict, outcome.user, set(outcome.chunk_ids), outcome.counted) == (
        "validated",
        "eve",
        cited,
        (),
    )
    assert remembered(setup) == {}
    trace = setup.ledger.searches.get(answer.trace_id)
    assert set(trace.settings["cited"]) == cited
    assert setup.reports[-1].facts == {"learned": 0}
    setup.ask("On weekdays, when does the sauna open?", user="adam")
    assert remembered(setup) == dict.fromkeys(cited, 2)
    assert setup.reports[-1].facts == {"learned": 1}


@pytest.mark.long
def test_a_wrong_answer_that_is_approved_fifty_times_changes_no_ranking(setup: Setup) -> None:
    setup.put("gym.txt", "The sauna opens at 18:30 on weekdays.", "Towels cost 2 euros.")
    question = "When does the sauna open?"
    before = setup.ask(question)
    for n in range(50):
        again = setup.ask(question if n % 2 else question.upper(), user=f"user {n}")
        assert again.answered
    assert setup.ledger.memory.scope("papers").changes >= 50
    first, last = (setup.ledger.searches.get(each.trace_id) for each in (before, again))
    assert (last.hits, last.scores) == (first.hits, first.scores)
    assert remembered(setup) == {}


def test_what_was_not_approved_teaches_nothing(setup: Setup) -> None:
    answer = setup.ask(NOT_THERE)
    assert setup.ledger.outcomes.of_trace(answer.trace_id) == []
    assert remembered(setup) == {}
    assert "cited" not in setup.ledger.searches.get(answer.trace_id).settings
    assert setup.reports[-1].facts == {"learned": 0}


def test_nothing_is_learned_where_the_settings_say_so(setup: Setup) -> None:
    setup.change(memory=MemorySettings(record=False))
    answer = setup.ask(QUERIES)
    assert answer.answered
    assert setup.ledger.outcomes.of_trace(answer.trace_id) == []
    assert remembered(setup) == {}


@pytest.mark.parametrize("fails", ["record", "outcome"])
def test_a_ledger_that_cannot_record_costs_no_answer(
    setup: Setup, fails: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def down(*_: Any, **__: Any) -> Any:
        raise StoreDown("the ledger does not answer")

    monkeypatch.setattr(setup.learning, fails, down)
    answer = setup.ask(QUERIES, thread_id="t")
    assert answer.answered
    assert len(setup.threads.turns("papers", "", "t")[1]) == 1
    assert f"answer {answer.trace_id} taught nothing" in caplog.text
    assert "weeks" not in caplog.text
    assert "parental" not in caplog.text


def test_what_nodes_say_of_themselves_is_no_text(setup: Setup) -> None:
    setup.ask(QUERIES, thread_id="t")
    output = str([report.facts for report in setup.reports])
    assert not any(word in output.casefold() for word in ("parental", "weeks", "leave.txt"))


def test_an_embedder_that_is_down_leaves_the_words(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: Any) -> Any:
        raise EmbedderDown("it is down")

    for name in ("query", "passages"):
        monkeypatch.setattr(setup.engine.embedder, name, down)
    answer = setup.ask("Parental leave lasts how many weeks?")
    assert (answer.partial, answer.answered) == (True, True)


def test_threads_may_share_the_agent(setup: Setup) -> None:
    questions = [QUERIES, "What does lunch in the canteen cost?", "When does the library open?"]
    alone = [setup.ask(question).text for question in questions]
    found: dict[int, str] = {}

    def ask(n: int) -> None:
        request = AnswerRequest(collection="papers", question=questions[n % 3], thread_id=f"t{n}")
        found[n] = setup.agent.answer(request).text

    asking = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    assert [found[n] for n in range(6)] == alone * 2
    assert all(len(setup.threads.turns("papers", "", f"t{n}")[1]) == 1 for n in range(6))
