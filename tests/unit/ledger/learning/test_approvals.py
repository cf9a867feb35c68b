"""An approval counts only if something independent agrees; a person's verdict always counts."""

import random
import time
import unicodedata
from typing import Any

import numpy as np
import pytest
from learned import EAST, HALF_LIFE, NORTH, say, trace
from ledger_moves import publish
from sqlalchemy import select, update

from callslip.config.sections.ranking import MemorySettings, TracesSettings
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.chunk_stats import ChunkStats
from callslip.stores.ledger import Ledger, OutcomeRecord
from callslip.stores.ledger.base import memory_tables
from callslip.stores.ledger.learning.outcomes import DAY

pytest_plugins = ["ledger_fixtures"]

NOON = 20_000 * DAY + 40_000


@pytest.fixture(autouse=True)
def document(ledger: Ledger) -> None:
    publish(ledger, "one", "abc")


def outcome(ledger: Ledger, query: str, verdict: Any, **given: Any) -> OutcomeRecord:
    """Search, and give an outcome of chunk `a`."""
    made = trace(query, "abc", given.pop("vector", EAST))
    Learning(ledger, MemorySettings(), TracesSettings()).record([made])
    return say(ledger, made.trace_id, ["a"], verdict, **given)


def approve(ledger: Ledger, query: str, user: str = "", **given: Any) -> OutcomeRecord:
    return outcome(ledger, query, "validated", user=user, **given)


def stats(ledger: Ledger) -> ChunkStats | None:
    return ledger.memory.of("papers", ["a"]).get("a")


def counts(ledger: Ledger) -> tuple[int, int]:
    """The useful and the useless outcomes that count."""
    found = stats(ledger)
    return (found.useful, found.useless) if found else (0, 0)


def test_an_approval_alone_does_not_count_however_often_it_is_repeated(ledger: Ledger) -> None:
    for n in range(50):
        made = approve(ledger, "how long?" if n % 2 else "How  long", now=NOON + n * DAY)
        assert made.counted == ()
    assert stats(ledger) is None


@pytest.mark.parametrize(
    "approvals",
    [
        [("how long?", "eve"), ("for how long?", "eve"), ("what time?", "eve")],
        [("how long?", "eve"), ("How long", "adam"), ('"how long"?', "")],
    ],
    ids=["one asker", "one wording"],
)
def test_one_asker_or_one_wording_is_no_agreement(
    ledger: Ledger, approvals: list[tuple[str, str]]
) -> None:
    for query, user in approvals:
        approve(ledger, query, user)
    assert stats(ledger) is None


def test_another_asker_with_other_words_makes_all_approvals_count(ledger: Ledger) -> None:
    approve(ledger, "how long?", "eve", vector=EAST)
    approve(ledger, "how long?", "eve", vector=EAST)
    second = approve(ledger, "what time?", "adam", vector=NORTH)
    assert second.counted == ("a",)
    found = stats(ledger)
    assert found is not None
    assert (found.useful, found.questions) == (2, 2)
    assert found.centroid is not None
    assert np.allclose(found.centroid, (EAST + NORTH) / 2)
    assert found.utility_now(time.time(), HALF_LIFE) == pytest.approx(2, abs=1e-6)
    ledger.outcomes.withdraw(second.outcome_id, half_life_weeks=HALF_LIFE)
    assert stats(ledger) is None


def test_a_person_who_agrees_makes_approvals_count(ledger: Ledger) -> None:
    approve(ledger, "how long?")
    helpful = outcome(ledger, "what time?", "helpful", user="eve")
    assert counts(ledger) == (2, 0)
    ledger.outcomes.withdraw(helpful.outcome_id, half_life_weeks=HALF_LIFE)
    assert stats(ledger) is None


def test_an_approval_by_a_language_model_counts_at_once(ledger: Ledger) -> None:
    assert approve(ledger, "how long?", by_model=True).counted == ("a",)
    assert counts(ledger) == (1, 0)


def test_unhelpful_takes_back_approvals_and_weighs_as_much_as_helpful(ledger: Ledger) -> None:
    approve(ledger, "how long?", "eve")
    approve(ledger, "what time?", "adam")
    approve(ledger, "since when?", by_model=True)
    assert counts(ledger) == (3, 0)
    unhelpful = outcome(ledger, "how long?", "unhelpful", user="john")
    assert counts(ledger) == (0, 1)
    found = stats(ledger)
    assert found is not None
    assert found.utility_now(time.time(), HALF_LIFE) == pytest.approx(-1, abs=1e-6)
    outcome(ledger, "how long?", "helpful", user="mary")
    assert counts(ledger) == (1, 1)
    outcome(ledger, "how long?", "helpful", user="anne")
    assert counts(ledger) == (5, 1)
    ledger.outcomes.withdraw(unhelpful.outcome_id, half_life_weeks=HALF_LIFE)
    assert counts(ledger) == (5, 0)


def test_the_order_of_outcomes_and_withdrawals_does_not_matter(ledger: Ledger) -> None:
    chance = random.Random(7)
    given = [
        *((f"question {n % 3}", "validated", f"user {n % 2}") for n in range(6)),
        ("question 1", "helpful", "eve"),
        ("question 2", "unhelpful", "adam"),
        ("question 3", "helpful", "john"),
    ]
    found = set()
    for _ in range(8):
        chance.shuffle(given)
        made = [
            outcome(ledger, query, verdict, user=user, now=NOON) for query, verdict, user in given
        ]
        withdrawn = [each for each in made if each.verdict == "helpful" and each.user == "eve"]
        for each in withdrawn:
            ledger.outcomes.withdraw(each.outcome_id, half_life_weeks=HALF_LIFE, now=NOON)
        after = stats(ledger)
        assert after is not None
        found.add((after.useful, after.useless, after.questions, round(after.utility, 6)))
        assert ledger.memory.reset("papers") == 1
        assert stats(ledger) is None
    assert found == {(1, 1, 1, 0.0)}


def test_a_reset_forgets_approvals_that_wait_for_agreement(ledger: Ledger) -> None:
    approve(ledger, "how long?", "eve")
    ledger.memory.reset("papers")
    approve(ledger, "what time?", "adam")
    assert stats(ledger) is None


def test_outcomes_of_an_older_ledger_are_weighed_anew(ledger: Ledger) -> None:
    """Before revision 2 every approval counted, once a day for a question of a user."""
    for day in range(3):
        approve(ledger, f"question {day}", by_model=True, now=NOON + day * DAY)
    outcome(ledger, "question 3", "helpful", user="eve", now=NOON)
    assert counts(ledger) == (4, 0)
    outcomes, of_chunk = memory_tables.outcomes, memory_tables.outcome_chunks
    approvals = select(outcomes.c.outcome_id).where(outcomes.c.verdict == "validated")
    with ledger._database.writing() as connection:
        connection.execute(
            update(of_chunk).where(of_chunk.c.outcome_id.in_(approvals)).values(counts=None)
        )
        connection.execute(update(outcomes).values(by_model=False, profile_id="p" * 32))
    assert ledger.outcomes.weigh_anew(HALF_LIFE, NOON + 3 * DAY) == 1
    assert counts(ledger) == (2, 0)
    assert ledger.outcomes.weigh_anew(HALF_LIFE, NOON + 3 * DAY) == 0
    outcome(ledger, "question 4", "unhelpful", user="adam", now=NOON + 3 * DAY)
    assert counts(ledger) == (1, 1)


def test_a_repetition_before_outcomes_are_weighed_anew_counts_once(ledger: Ledger) -> None:
    approve(ledger, "how long?", "eve", by_model=True, now=NOON)
    of_chunk = memory_tables.outcome_chunks
    old = update(of_chunk).where(of_chunk.c.counts.is_(True)).values(counts=None, counted_as="old")
    with ledger._database.writing() as connection:
        connection.execute(old)
    assert approve(ledger, "How long", "eve", now=NOON + DAY).counted == ()
    assert counts(ledger) == (1, 0)
    assert ledger.outcomes.weigh_anew(HALF_LIFE, NOON + DAY) == 0


def test_the_same_words_in_another_encoding_are_one_wording(ledger: Ledger) -> None:
    for user, query in enumerate(("휴가는 얼마?", "휴가는 — 얼마", "휴가는 얼마 ?")):
        approve(ledger, unicodedata.normalize("NFD" if user else "NFC", query), f"user {user}")
    assert stats(ledger) is None
    approve(ledger, "휴가 C++", "adam")
    assert counts(ledger) == (4, 0)
