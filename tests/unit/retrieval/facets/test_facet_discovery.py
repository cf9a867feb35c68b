"""Facets that are proposed: properties that divide, clusters with their terms."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from facet_parts import Library

from callslip.config.settings import Settings
from callslip.retrieval.facets.discovery import Proposals, discover, judge
from callslip.retrieval.tuning.proposing import Proposed, further_facets
from callslip.stores.ledger import Ledger


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        yield Library(ledger)


def proposals(library: Library, *known: str) -> Proposals:
    names = {"subject", "group", "number", "added", "only"}
    library.ledger.collections.has_properties("library", names)
    return discover(library.ledger, library.store, "library", "", known)


def test_properties_that_divide_the_collection_are_proposed(library: Library) -> None:
    library.fill(12)
    found = {p.name: p for p in proposals(library).properties}
    assert set(found) == {"subject", "group", "number"}
    subject = found["subject"]
    assert (subject.coverage, subject.evenness, subject.distinct) == (1.0, 1.0, 3)
    assert subject.separation > 0.3 > found["group"].separation
    assert dict(subject.values) == {"leave": 12, "fire": 12, "pay": 12}


def test_a_known_facet_is_not_proposed(library: Library) -> None:
    library.fill()
    assert "subject" not in {p.name for p in proposals(library, "subject").properties}


def test_a_property_that_divides_well_is_proposed_as_a_facet_until_it_is_declined(
    library: Library,
) -> None:
    library.fill(12)
    ledger, names = library.ledger, {"subject", "group", "number"}
    ledger.collections.has_properties("library", names)

    def found() -> Proposed:
        record = ledger.collections.get("library")
        return further_facets(ledger, Settings(), library.store, record, "")

    first = found()
    assert first.changes == {"facets": ["subject"]}
    assert {p["name"] for p in first.figures["properties"]} == names
    assert "leave" not in json.dumps(first.figures)  # a value, which is of the documents
    run = ledger.proposals.begin("facets", "library", "", 60)
    assert run is not None
    ledger.proposals.end(run, first.figures, first.changes, first.before, first.reason)
    ledger.proposals.decide("library", run.proposal_id, accept=False, by="eve")
    assert (found().changes, found().reason != "") == ({}, True)


def test_days_names_and_single_values_divide_nothing() -> None:
    assert judge("added", [("2024-01-01", 50), ("2024-01-02", 50)], 100, []) is None
    assert judge("only", [("x", 100)], 100, []) is None
    assert judge("name", [(f"file {n}.pdf", 1) for n in range(100)], 100, []) is None
    assert judge("many", [(f"v{n}", 9) for n in range(500)], 4500, []) is None
    uneven = judge("kind", [("law", 98), ("faq", 2)], 200, [])
    assert uneven is not None
    assert (uneven.coverage, uneven.evenness < 0.2) == (0.5, True)


@pytest.mark.long
def test_clusters_have_the_terms_that_tell_them_apart(library: Library) -> None:
    library.fill(40)
    found = proposals(library).clusters
    assert 4 <= len(found) <= 12
    assert sum(c.share for c in found) == pytest.approx(1, abs=0.01)
    output = {term.lower() for cluster in found for term in cluster.terms}
    assert {"fire"} <= output
    assert found == proposals(library).clusters


def test_a_small_collection_has_no_clusters(library: Library) -> None:
    assert proposals(library) == Proposals((), (), 0)
    library.add("A zebra stands here alone.", subject="zoo")
    assert proposals(library).clusters == ()


def test_properties_that_no_passage_has_take_no_places(library: Library) -> None:
    library.fill(12)
    before = proposals(library)
    library.ledger.collections.has_properties("library", {f"a{n:02}" for n in range(64)})
    assert proposals(library) == before
