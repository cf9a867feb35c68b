"""A question gets the spelling that more of the collection's passages have."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from memory_store import MemoryStore
from search_parts import ask, found, ingest, made_of, make_places

from callslip.config.sections.ranking import SearchSettings
from callslip.models.text.analyzer import Analyzer
from callslip.retrieval.candidates.calibration import NO_SAMPLE, ScoreCalibration
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.candidates.spelling import Spelling
from callslip.retrieval.messages import SearchRequest
from callslip.retrieval.run import make_plan, make_query
from callslip.retrieval.timings import Timings
from callslip.stores.ledger import Ledger

analyze = Analyzer().analyze


def sample(*passages: str) -> ScoreCalibration:
    terms = [analyze(passage) for passage in passages]
    frequencies = Counter(term for one in terms for term in set(one.split()))
    return ScoreCalibration({}, frequencies, len(terms), len(terms), [f" {one} " for one in terms])


def spelled(question: str, *passages: str) -> str:
    return Spelling(sample(*passages), analyze).of(question)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("email", "e-mail"),
        ("wifi", "wi-fi"),
        ("covid19", "covid-19"),
        ("coronavirus", "corona virus"),
        ("workplaces", "work places"),
        ("3months", "3 months"),
    ],
)
def test_both_spellings_of_a_word_find_both(one: str, other: str) -> None:
    for stated, written in ((one, other), (other, one)):
        question = spelled(f"Is the {stated} (new)?", f"The {written} is here")
        assert analyze(question) == analyze(f"Is the {written} (new)?")
        assert spelled(f"the {stated} of", f"the {stated}") == f"the {stated} of"


def test_a_spelling_that_is_four_times_as_frequent_wins() -> None:
    assert spelled("by e-mail", *["email"] * 4, "one e-mail") == "by email"
    assert spelled("by e-mail", *["email"] * 3, "one e-mail") == "by e-mail"
    assert spelled("by email", "email", *["e-mail"] * 4) == "by e mail"
    assert spelled("by email", "email", *["e-mail"] * 3) == "by email"


def test_a_right_word_of_the_passages_stays() -> None:
    overtime, over_time = ["Overtime needs approval."] * 2, ["Prices change over time."] * 2
    assert spelled("Do prices change over time?", *overtime, over_time[0]) == (
        "Do prices change over time?"
    )
    assert spelled("Is overtime paid?", overtime[0], *over_time) == "Is overtime paid?"


def test_a_letter_behind_a_number_is_no_unit() -> None:
    assert spelled("the 401k plan", "plan k", "a plan") == "the 401k plan"


def test_an_amount_need_not_be_written_in_the_passages() -> None:
    assert spelled("after 6weeks", "12 weeks") == "after 6 weeks"
    assert spelled("the mp3", "3 of them") == "the mp3"


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("a longer way", "along the way"),
        ("hand is out", "handis"),
        ("10 20", "1020"),
        ("alive", "a live show"),
        ("cats, dogs", "catsdogs"),
        ("difficulties", "a difficult i"),
        ("출산 장려금", "출산장려금"),
        ("", "words"),
    ],
)
def test_other_words_stay_as_they_are(question: str, passage: str) -> None:
    assert spelled(question, passage) == question


def test_without_a_sample_the_question_stays() -> None:
    assert Spelling(NO_SAMPLE, analyze).of("e-mail in 3months") == "e-mail in 3months"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Resources]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        made = made_of(ledger, MemoryStore(), SearchSettings(result_cache=0))
        make_places(made)
        ingest(made, "a", ["a1"], words="north east")
        yield made


def test_a_search_is_for_the_spelling_of_the_passages(
    engine: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = {"collection": "papers", "query": "northeast", "ranking": {"alpha": 0}}
    plan = make_plan(engine, SearchRequest.model_validate(request), Timings())
    assert make_query(engine, plan, Timings()).keywords == "north east"
    assert found(ask(engine, "northeast", ranking={"alpha": 0})) == ["a1"]
    part = replace(sample("north east"), passages=9)
    monkeypatch.setattr(engine.calibrations, "of", lambda *_, **__: part)
    query = make_query(engine, plan, Timings())
    assert (query.terms, query.keywords) == ("north east", "north east northeast")
    other = replace(plan, parameters=plan.parameters.model_copy(update={"fusion": "rrf"}))
    assert make_query(engine, other, Timings()).terms == "northeast"
