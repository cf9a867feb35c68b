"""Outcomes and chunk memory in the ledger."""

import json
import threading
import time
from typing import Any

import numpy as np
import pytest
from learned import EAST, HALF_LIFE, NORTH, say, trace
from ledger_moves import publish, store_chunks, submit
from sqlalchemy import update

from callslip.config.sections.ranking import MemorySettings, TracesSettings
from callslip.errors import (
    Conflict,
    FeedbackLimit,
    FeedbackNotFound,
    InvalidRequest,
    LedgerError,
    TraceNotFound,
)
from callslip.messages.options import USUAL
from callslip.readers import Reader
from callslip.retrieval.chance import new_id
from callslip.retrieval.ranking.features import Features
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.chunk_stats import WEEK, ChunkStats
from callslip.stores.ledger import Ledger
from callslip.stores.ledger.base.memory_tables import metadata, retrieval_events, traces
from callslip.stores.ledger.learning.outcomes import DAY
from callslip.stores.records import CollectionSchema, VectorSpec

pytest_plugins = ["ledger_fixtures"]


def record(ledger: Ledger, query: str, chunk_ids: str = "abc", **given: Any) -> str:
    """Record a search that gave these chunks; its id."""
    made = trace(query, list(chunk_ids), **given)
    Learning(ledger, MemorySettings(), TracesSettings()).record([made])
    return made.trace_id


def stats(ledger: Ledger, chunk_id: str = "a") -> ChunkStats | None:
    return ledger.memory.of("papers", [chunk_id]).get(chunk_id)


def everything(ledger: Ledger) -> dict[str, list[Any]]:
    """Every row of what is learned."""
    names = (
        *("chunk_stats", "memory_places", "query_profiles", "retrieval_events"),
        *("outcomes", "outcome_chunks", "traces"),
    )
    with ledger._database.reading() as connection:
        return {
            name: list(connection.execute(metadata.tables[name].select()).all()) for name in names
        }


def test_a_win_is_remembered_with_its_question(ledger: Ledger) -> None:
    item = publish(ledger, "one", "abc")
    outcome = say(ledger, record(ledger, "how long?"), ["a"])
    assert outcome.counted == ("a",)
    found = stats(ledger)
    assert found is not None
    assert (found.useful, found.useless, found.document_id) == (1, 0, item.document_id)
    assert found.centroid is not None
    assert np.allclose(found.centroid, EAST)
    assert found.intents == {"how-to": 1}
    assert found.utility_now(time.time(), HALF_LIFE) == pytest.approx(1, abs=1e-6)
    assert stats(ledger, "b") is None
    assert ledger.memory.scope("papers").changes == 1


def test_an_outcome_counts_once(ledger: Ledger) -> None:
    publish(ledger, "one", "abc")
    trace_id = record(ledger, "how long?")
    first = say(ledger, trace_id, ["a", "b"], user="eve")
    again, new = ledger.outcomes.add(
        trace_id, ["b", "a", "b"], "helpful", half_life_weeks=HALF_LIFE, user="eve"
    )
    assert (again, new) == (first, False)
    found = stats(ledger)
    assert found is not None
    assert found.useful == 1


def test_a_key_that_stands_for_something_else_is_a_conflict(ledger: Ledger) -> None:
    publish(ledger, "one", "abc")
    trace_id = record(ledger, "how long?")
    say(ledger, trace_id, ["a"], key="k", user="eve")
    with pytest.raises(Conflict, match="stands for other feedback"):
        say(ledger, trace_id, ["b"], key="k", user="eve")
    assert say(ledger, trace_id, ["b"], key="k", user="adam").counted == ("b",)


def test_one_user_counts_once_a_day_for_a_chunk(ledger: Ledger) -> None:
    publish(ledger, "one", "abc")
    noon = 20_000 * DAY + 40_000
    for n in range(20):
        say(ledger, record(ledger, f"question {n}"), ["a"], user="eve", now=noon + n)
        say(ledger, record(ledger, f"again {n}"), ["a"], "unhelpful", user="eve", now=noon + n)
    found = stats(ledger)
    assert found is not None
    assert (found.useful, found.useless) == (1, 0)
    say(ledger, record(ledger, "next day"), ["a"], user="eve", now=noon + DAY)
    say(ledger, record(ledger, "somebody else"), ["a"], user="adam", now=noon)
    found = stats(ledger)
    assert found is not None
    assert found.useful == 3


def test_only_hits_of_a_recorded_search_can_be_rated(ledger: Ledger) -> None:
    publish(ledger, "one", "abcd")
    trace_id = record(ledger, "how long?", "abc")
    with pytest.raises(InvalidRequest, match="'d' is none of the hits"):
        say(ledger, trace_id, ["a", "d"])
    with pytest.raises(TraceNotFound, match="0000"):
        say(ledger, "0000", ["a"])
    assert stats(ledger) is None


def test_a_user_who_gives_too_much_feedback_is_told_to_wait(ledger: Ledger) -> None:
    publish(ledger, "one", "abc")
    for n in range(3):
        say(ledger, record(ledger, f"question {n}"), ["a"], user="eve", per_hour=3)
    trace_id = record(ledger, "one more")
    with pytest.raises(FeedbackLimit):
        say(ledger, trace_id, ["a"], user="eve", per_hour=3)
    say(ledger, trace_id, ["a"], user="adam", per_hour=3)
    say(ledger, trace_id, ["a"], user="eve", per_hour=3, now=time.time() + 3601)


def test_a_withdrawn_outcome_leaves_nothing_and_stays_withdrawn(ledger: Ledger) -> None:
    publish(ledger, "one", "abc")
    trace_id = record(ledger, "how long?")
    outcome = say(ledger, trace_id, ["a", "b"], user="eve")
    taken = ledger.outcomes.withdraw(outcome.outcome_id, half_life_weeks=HALF_LIFE)
    assert taken.withdrawn_at is not None
    assert taken.counted == ()
    assert (stats(ledger), stats(ledger, "b")) == (None, None)
    again = ledger.outcomes.withdraw(outcome.outcome_id, half_life_weeks=HALF_LIFE)
    assert again == taken
    assert say(ledger, trace_id, ["a", "b"], user="eve") == taken, "a late repetition"
    assert say(ledger, trace_id, ["a", "b"], user="eve", key="anew").counted == ("a", "b")
    with pytest.raises(FeedbackNotFound, match="none"):
        ledger.outcomes.withdraw("none", half_life_weeks=HALF_LIFE)


def test_withdrawing_is_the_exact_inverse_among_other_outcomes(ledger: Ledger) -> None:
    publish(ledger, "one", "abc")
    start = time.time() - 10 * WEEK
    kept, taken = [], []
    rng = np.random.default_rng(1)
    for n in range(12):
        vector = rng.normal(size=4).astype(np.float32)
        trace_id = record(ledger, f"question {n}", vector=vector)
        verdict = "unhelpful" if n % 5 == 4 else "helpful"
        (kept if n % 2 else taken).append((trace_id, verdict, start + n * WEEK / 2, f"u{n}"))
    given = sorted(kept + taken, key=lambda each: each[2])
    ids = {
        each: say(ledger, each[0], ["a"], each[1], now=each[2], user=each[3]).outcome_id  # type: ignore[arg-type]
        for each in given
    }
    for each in taken:
        ledger.outcomes.withdraw(ids[each], half_life_weeks=HALF_LIFE)
    left = stats(ledger)
    ledger.memory.reset("papers")
    for each in kept:
        say(ledger, each[0], ["a"], each[1], now=each[2], user=each[3], key="anew")  # type: ignore[arg-type]
    alone = stats(ledger)
    assert left is not None
    assert alone is not None
    assert (left.useful, left.useless, left.questions) == (
        alone.useful,
        alone.useless,
        alone.questions,
    )
    assert (left.question_sum == alone.question_sum).all()  # type: ignore[union-attr]
    assert left.intents == alone.intents
    now = time.time()
    assert left.utility_now(now, HALF_LIFE) == pytest.approx(
        alone.utility_now(now, HALF_LIFE), abs=1e-12
    )


def test_outcomes_of_many_threads_are_all_counted(ledger: Ledger) -> None:
    publish(ledger, "one", "abc")
    ids = [record(ledger, f"question {n}", vector=EAST if n % 2 else NORTH) for n in range(40)]
    failures: list[BaseException] = []

    def work(mine: list[str]) -> None:
        try:
            for trace_id in mine:
                outcome = say(ledger, trace_id, ["a", "b"], user=trace_id)
                say(ledger, trace_id, ["a", "b"], user=trace_id)
                if ids.index(trace_id) % 4 == 0:
                    ledger.outcomes.withdraw(outcome.outcome_id, half_life_weeks=HALF_LIFE)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(ids[n::4] + ids[n::8],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    found = stats(ledger)
    assert found is not None
    assert (found.useful, found.questions) == (30, 30)
    assert found.centroid is not None
    assert np.allclose(found.centroid * 30, 20 * EAST + 10 * NORTH)


def test_what_was_learned_survives_a_new_version_and_goes_with_the_document(
    ledger: Ledger,
) -> None:
    item = publish(ledger, "one", "abc")
    trace_id = record(ledger, "how long?")
    say(ledger, trace_id, ["a", "b"])
    publish(ledger, "two", "ax")
    ledger.chunks.forget(item.document_id, ledger.chunks.end(item.document_id))
    assert stats(ledger) is not None
    assert stats(ledger, "b") is not None, "a rollback may bring it back"
    ledger.documents.delete(item.document_id)
    late = say(ledger, record(ledger, "late", "ab"), ["a"], user="late")
    assert late.counted == (), "it is on its way out"
    ledger.chunks.forget(item.document_id)
    assert (stats(ledger), stats(ledger, "b")) == (None, None)


def test_what_was_learned_goes_with_the_collection(ledger: Ledger) -> None:
    publish(ledger, "one", "abc")
    trace_id = record(ledger, "how long?")
    say(ledger, trace_id, ["a"])
    assert all(everything(ledger).values())
    ledger.collections.delete("papers")
    with pytest.raises(TraceNotFound):
        ledger.searches.get(trace_id)
    with pytest.raises(TraceNotFound):
        ledger.searches.trace(trace_id, keep_seconds=60)
    record(ledger, "too late")
    ledger.collections.forget("papers")
    record(ledger, "much too late")
    assert not any(everything(ledger).values())


def test_tenants_learn_apart_and_forget_apart(ledger: Ledger) -> None:
    ledger.collections.create(
        CollectionSchema("flats", VectorSpec(4), tenants=True), store="", embedder="", analyzer=""
    )
    for tenant in ("north", "south"):
        ledger.tenants.create("flats", tenant)
        made = record(ledger, "how long?", "a", collection="flats", tenant=tenant)
        with ledger._database.writing() as connection:
            connection.execute(
                metadata.tables["chunk_stats"].insert(),
                [
                    {
                        "collection": "flats",
                        "tenant": tenant,
                        "chunk_id": f"{tenant} {n}",
                        "document_id": "d",
                        "useful": 1,
                        "useless": 0,
                        "utility": 1.0,
                        "utility_at": 0.0,
                        "intents": {},
                        "entities": {},
                        "questions": 0,
                    }
                    for n in range(2)
                ],
            )
        assert ledger.searches.get(made).tenant == tenant
    assert [s.chunk_id for s in ledger.memory.best("flats", tenant="north")] == [
        "north 0",
        "north 1",
    ]
    assert ledger.memory.of("flats", ["north 0"], tenant="south") == {}
    ledger.tenants.delete("flats", "north")
    ledger.tenants.forget("flats", "north")
    left = everything(ledger)
    for name in ("chunk_stats", "query_profiles", "retrieval_events", "traces"):
        assert {row.tenant for row in left[name]} == {"south"}


def test_memory_is_exported_and_taken_in_exactly(ledger: Ledger) -> None:
    item = publish(ledger, "one", "abc")
    for n, vector in enumerate((EAST, NORTH, EAST + NORTH)):
        say(ledger, record(ledger, f"q {n}", vector=vector), ["a", "b"], user=f"u{n}")
    before = ledger.memory.page("papers")
    assert [s.chunk_id for s in before] == ["a", "b"]
    assert ledger.memory.reset("papers") == 2
    assert ledger.memory.page("papers") == []
    strange = ChunkStats("of nobody", "d", 1)
    assert ledger.memory.take_in("papers", [*before, strange]) == 2
    assert ledger.memory.take_in("papers", before) == 2
    after = ledger.memory.page("papers")
    assert [s.question_sum.tolist() for s in after] == [s.question_sum.tolist() for s in before]  # type: ignore[union-attr]
    assert [(s.useful, s.utility, s.document_id) for s in after] == [
        (3, before[0].utility, item.document_id)
    ] * 2


def test_an_outcome_from_before_a_reset_changes_nothing_when_withdrawn(ledger: Ledger) -> None:
    publish(ledger, "one", "abc")
    trace_id = record(ledger, "how long?")
    old = say(ledger, trace_id, ["a"], user="eve")
    ledger.memory.reset("papers")
    say(ledger, trace_id, ["a"], user="eve", key="anew")
    ledger.outcomes.withdraw(old.outcome_id, half_life_weeks=HALF_LIFE)
    found = stats(ledger)
    assert found is not None
    assert found.useful == 1


def test_a_week_of_decay_is_written_down_once(ledger: Ledger) -> None:
    publish(ledger, "one", "abc")
    now = time.time()
    say(ledger, record(ledger, "old"), ["a"], now=now - 2 * WEEK)
    say(ledger, record(ledger, "new"), ["b"], now=now)
    before = stats(ledger)
    assert before is not None
    assert ledger.memory.fade(HALF_LIFE, now) == 1
    assert ledger.memory.fade(HALF_LIFE, now) == 0
    after = stats(ledger)
    assert after is not None
    assert after.utility == pytest.approx(0.5 ** (2 / HALF_LIFE))
    assert after.utility_now(now + WEEK, HALF_LIFE) == pytest.approx(
        before.utility_now(now + WEEK, HALF_LIFE)
    )


def test_the_centre_is_the_mean_of_the_questions_once_there_are_enough(ledger: Ledger) -> None:
    publish(ledger, "one", "abc")
    say(ledger, record(ledger, "one", vector=EAST * 3), ["a"])
    record(ledger, "two", vector=NORTH)
    record(ledger, "two", vector=NORTH)
    record(ledger, "of words alone", vector=None)
    ledger.memory.centre(3)
    assert ledger.memory.scope("papers").centre is None
    ledger.memory.centre(2)
    position = ledger.memory.scope("papers")
    assert position.questions == 2
    assert position.centre is not None
    assert np.allclose(position.centre, (EAST + NORTH) / 2)


def test_questions_are_kept_as_numbers_unless_the_collection_keeps_them(ledger: Ledger) -> None:
    secret = record(ledger, "what of Mr Doe?")
    profile = ledger.searches.get(secret).profile
    assert profile.text is None
    assert all(name[0] == "#" for name in profile.entities)
    assert "Doe" not in str(everything(ledger))
    assert "Leeds" not in str(everything(ledger))
    ledger.collections.set_options("papers", USUAL.model_copy(update={"keep_queries": True}))
    profile = ledger.searches.get(record(ledger, "what of Mr Doe?")).profile
    assert profile.text == "what of Mr Doe?"
    assert profile.entities == ("DPC", "Leeds")


def test_a_search_is_recorded_once_and_its_question_counted(ledger: Ledger) -> None:
    one, other = trace("how long?", "ab"), trace("How  long?", "ab")
    learning = Learning(ledger, MemorySettings(), TracesSettings())
    learning.record([one, one, other])
    learning.record([one])
    rows = everything(ledger)
    assert [row.asked for row in rows["query_profiles"]] == [2]
    assert len(rows["retrieval_events"]) == len(rows["traces"]) == 2
    event = ledger.searches.get(one.trace_id)
    assert list(event.hits) == ["a", "b"]
    assert event.scores[0] == {"fused": 1.0, "score": 1.0}


def test_traces_and_searches_can_be_switched_off_and_shared(ledger: Ledger) -> None:
    Learning(ledger, MemorySettings(record=False), TracesSettings(share=0)).record(
        [trace("q", "a")]
    )
    assert not any(everything(ledger).values())
    some = [trace(f"q {n}", "a") for n in range(100)]
    Learning(ledger, MemorySettings(record=False), TracesSettings(share=0.5)).record(some)
    rows = everything(ledger)
    assert rows["retrieval_events"] == []
    assert 30 < len(rows["traces"]) < 70


def test_a_trace_expires(ledger: Ledger) -> None:
    made = trace("how long?", "ab", at=time.time() - 100)
    Learning(ledger, MemorySettings(), TracesSettings()).record([made])
    found = ledger.searches.trace(made.trace_id, keep_seconds=200)
    assert found.body["timings"] == {"legs": 1.5}
    assert "how long" not in str(found.body)
    with pytest.raises(TraceNotFound, match=made.trace_id):
        ledger.searches.trace(made.trace_id, keep_seconds=50)


def test_a_trace_is_compressed_and_one_of_an_earlier_version_is_read(ledger: Ledger) -> None:
    made = trace("how long?", [f"{n:032x}" for n in range(300)])
    Learning(ledger, MemorySettings(), TracesSettings()).record([made])
    body = ledger.searches.trace(made.trace_id, keep_seconds=60).body
    [row] = everything(ledger)["traces"]
    assert row.body == {}
    assert len(row.packed) < len(json.dumps(body)) / 3
    with ledger.searches._database.writing() as connection:
        connection.execute(update(traces).values(body=body, packed=None))
    assert ledger.searches.trace(made.trace_id, keep_seconds=60).body == body
    with ledger.searches._database.writing() as connection:
        connection.execute(update(traces).values(packed=row.packed[:-1] + b"x"))
    with pytest.raises(LedgerError, match="damaged"):
        ledger.searches.trace(made.trace_id, keep_seconds=60)


def test_a_record_is_compressed_and_one_of_an_earlier_version_is_read(ledger: Ledger) -> None:
    chunk_ids = [new_id() for _ in range(200)]
    basis = tuple(Features(1 / n, None, 0.0, 0.0, 0.0, 0.25) for n in range(1, 41))
    made = trace("how long?", chunk_ids, basis=lambda: basis)
    Learning(ledger, MemorySettings(), TracesSettings()).record([made])
    recorded = ledger.searches.get(made.trace_id)
    assert recorded.hits == chunk_ids
    plain = {name: getattr(recorded, name) for name in ("hits", "scores", "basis")}
    [row] = everything(ledger)["retrieval_events"]
    assert (row.hits, row.scores, row.basis) == ([], [], [])
    assert len(row.packed) < len(json.dumps(plain)) / 2
    with ledger.searches._database.writing() as connection:
        connection.execute(update(retrieval_events).values(plain | {"packed": None}))
    earlier = ledger.searches.get(made.trace_id)
    assert {name: getattr(earlier, name) for name in plain} == plain


def test_old_searches_traces_and_outcomes_are_forgotten_and_the_learned_stays(
    ledger: Ledger,
) -> None:
    publish(ledger, "one", "abc")
    now = time.time()
    old = [record(ledger, f"old {n}", at=now - 1000 + n) for n in range(5)]
    new = [record(ledger, f"new {n}", at=now - 10 + n) for n in range(5)]
    say(ledger, old[0], ["a"], now=now - 1000)
    assert ledger.searches.trim(now - 100, 1000) == 5
    assert ledger.searches.trim_traces(now - 100, 3) == 7
    assert ledger.outcomes.trim(now - 100) == 1
    assert ledger.searches.trim(0.0, 2) == 3
    rows = everything(ledger)
    assert {row.trace_id for row in rows["retrieval_events"]} == set(new[3:])
    assert len(rows["query_profiles"]) == 2
    assert rows["outcomes"] == rows["outcome_chunks"] == []
    assert stats(ledger) is not None


def test_a_chunk_that_is_not_live_yet_can_be_learned_about_only_where_it_is_known(
    ledger: Ledger,
) -> None:
    item = submit(ledger)
    store_chunks(ledger, item, ["a"])
    assert say(ledger, record(ledger, "early", "az"), ["a", "z"]).counted == ("a",)


def test_memory_is_known_to_those_who_may_read_its_passage(ledger: Ledger) -> None:
    hidden = publish(ledger, "one", "abc")
    publish(ledger, "two", "de", "b.txt")
    bob = ledger.for_reader(Reader("bob", frozenset({"user:bob"})))
    ledger.readers.set(hidden.document_id, ("user:ann",))
    assert not bob.memory.is_known("papers")
    say(ledger, record(ledger, "q"), ["a"])
    assert ledger.memory.is_known("papers")
    assert not bob.memory.is_known("papers")
    say(ledger, record(ledger, "r", "de"), ["d"], user="u")
    assert bob.memory.is_known("papers")
