"""Runs for proposals: when one is due, who has it, and what becomes of what it proposes."""

import pytest

from callslip.errors import CollectionNotFound, Conflict, LeaseLost, ProposalNotFound
from callslip.messages.options import Options
from callslip.stores.ledger import Ledger, Proposal, ProposedRun
from callslip.stores.ledger.learning.proposals import MOST_ATTEMPTS, SCHEDULER
from callslip.vocabulary import ProposalKind

pytest_plugins = ["ledger_fixtures"]

RANKING = {"ranking": {"alpha": 0.6}}
WAS = {"ranking": None}
WEEK = 7 * 86_400.0


def begun(ledger: Ledger, kind: ProposalKind = "ranking", lease: float = 60) -> ProposedRun:
    run = ledger.proposals.begin(kind, "papers", "", lease)
    assert run is not None
    return run


def proposed(ledger: Ledger) -> Proposal:
    ledger.proposals.end(begun(ledger), {"after": 0.9}, RANKING, WAS, "")
    return ledger.proposals.find("papers")[0]


def set_options(ledger: Ledger, **options: object) -> None:
    ledger.collections.set_options("papers", Options.model_validate(options))


def test_the_first_run_is_due_some_time_after_the_collection_was_made(ledger: Ledger) -> None:
    assert not ledger.proposals.is_due("ranking", "papers", WEEK)
    assert ledger.proposals.is_due("ranking", "papers", 0)
    assert not ledger.proposals.is_due("ranking", "nothing", 0)
    ledger.proposals.end(begun(ledger), {}, {}, {}, "too-few-questions: 3")
    assert not ledger.proposals.is_due("ranking", "papers", WEEK)
    assert ledger.proposals.is_due("ranking", "papers", 0)
    assert not ledger.proposals.is_due("facets", "papers", WEEK)
    (row,) = ledger.proposals.find("papers")
    assert (row.state, row.reason) == ("nothing", "too-few-questions: 3")
    assert row.ended_at is not None


def test_one_process_has_a_run_until_its_lease_is_over(ledger: Ledger) -> None:
    first = begun(ledger, lease=60)
    with pytest.raises(Conflict, match="under way"):
        ledger.proposals.begin("ranking", "papers", "", 60)
    assert not ledger.proposals.is_due("ranking", "papers", 0)
    begun(ledger, "facets")
    with pytest.raises(CollectionNotFound):
        ledger.proposals.begin("ranking", "nothing", "", 60)
    assert ledger.proposals.end(first, {}, {}, {}, "no") == "nothing"


def test_a_run_whose_worker_died_is_begun_again_and_the_dead_one_writes_nothing(
    ledger: Ledger,
) -> None:
    dead = begun(ledger, lease=-1)
    assert ledger.proposals.is_due("ranking", "papers", WEEK)
    again = begun(ledger)
    assert (again.proposal_id, again.attempt) == (dead.proposal_id, 2)
    with pytest.raises(LeaseLost):
        ledger.proposals.end(dead, {}, RANKING, WAS, "")
    assert ledger.proposals.end(again, {}, RANKING, WAS, "") == "waiting"
    assert len(ledger.proposals.find("papers")) == 1


def test_a_run_that_kills_its_workers_is_given_up_until_the_next_is_due(ledger: Ledger) -> None:
    for _ in range(MOST_ATTEMPTS):
        begun(ledger, lease=-1)
    assert ledger.proposals.begin("ranking", "papers", "", 60) is None
    (row,) = ledger.proposals.find("papers")
    assert (row.state, row.reason.partition(":")[0]) == ("failed", "worker-lost")
    assert not ledger.proposals.is_due("ranking", "papers", WEEK)


def test_a_proposal_waits_and_a_yes_sets_the_options_once(ledger: Ledger) -> None:
    set_options(ledger, scrub="text")
    waiting = proposed(ledger)
    assert waiting.state == "waiting"
    assert ledger.collections.get("papers").options.ranking.alpha is None
    for _ in range(2):
        done = ledger.proposals.decide("papers", waiting.proposal_id, accept=True, by="eve")
        assert (done.state, done.decided_by) == ("applied", "eve")
    options = ledger.collections.get("papers").options
    assert (options.ranking.alpha, options.scrub) == (0.6, "text")
    with pytest.raises(Conflict, match="applied"):
        ledger.proposals.decide("papers", waiting.proposal_id, accept=False, by="eve")
    with pytest.raises(ProposalNotFound):
        ledger.proposals.decide("papers", "none", accept=True, by="eve")


def test_a_no_is_recorded_and_changes_nothing(ledger: Ledger) -> None:
    run = begun(ledger, "facets")
    ledger.proposals.end(run, {}, {"facets": ["author"]}, {"facets": None}, "")
    declined = ledger.proposals.decide("papers", run.proposal_id, accept=False, by="eve")
    assert declined.state == "declined"
    assert ledger.collections.get("papers").options.facets == ()
    assert ledger.proposals.declined("facets", "papers") == [{"facets": ["author"]}]
    assert ledger.proposals.declined("ranking", "papers") == []


def test_a_later_run_supersedes_what_waits_even_if_it_finds_nothing(ledger: Ledger) -> None:
    first = proposed(ledger)
    second = proposed(ledger)
    ledger.proposals.end(begun(ledger), {}, {}, {}, "not-better: no")
    states = {p.proposal_id: p.state for p in ledger.proposals.find("papers")}
    assert states[first.proposal_id] == states[second.proposal_id] == "superseded"
    assert ledger.proposals.find("papers", states=["waiting"]) == []
    waiting = proposed(ledger)
    begun(ledger)
    ledger.proposals.fail("ranking", "papers", "time-out: it took longer")
    (still,) = ledger.proposals.find("papers", states=["waiting"])
    assert still.proposal_id == waiting.proposal_id
    (failed,) = ledger.proposals.find("papers", states=["failed"])
    assert failed.reason == "time-out: it took longer"


def test_options_that_changed_meanwhile_are_not_overwritten(ledger: Ledger) -> None:
    waiting = proposed(ledger)
    set_options(ledger, ranking={"proximity": 0.5})
    with pytest.raises(Conflict, match="have changed"):
        ledger.proposals.decide("papers", waiting.proposal_id, accept=True, by="eve")
    assert ledger.collections.get("papers").options.ranking.alpha is None
    assert ledger.proposals.find("papers")[0].state == "waiting"


def test_a_collection_that_opted_in_gets_its_proposals_at_once(ledger: Ledger) -> None:
    set_options(ledger, apply_proposals=["ranking"])
    done = proposed(ledger)
    assert (done.state, done.decided_by) == ("applied", SCHEDULER)
    options = ledger.collections.get("papers").options
    assert (options.ranking.alpha, options.apply_proposals) == (0.6, ("ranking",))
    facets = begun(ledger, "facets")
    assert ledger.proposals.end(facets, {}, {"facets": ["a"]}, {"facets": None}, "") == "waiting"
    stale = begun(ledger)  # it has read other options than those in force
    assert ledger.proposals.end(stale, {}, {"ranking": {}}, WAS, "") == "waiting"
    assert ledger.collections.get("papers").options.ranking.alpha == 0.6


def test_a_deleted_collection_takes_its_proposals_along(ledger: Ledger) -> None:
    proposed(ledger)
    ledger.collections.delete("papers")
    with pytest.raises(CollectionNotFound):
        ledger.proposals.begin("ranking", "papers", "", 60)
    ledger.collections.forget("papers")
    assert ledger.proposals.find("papers") == []
