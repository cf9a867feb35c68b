"""Weights of facet values for a question, and the prior that they give a chunk."""

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from facet_parts import COLLECTION, SUBJECTS, Library, embed

from callslip.retrieval.facets.weights import (
    LEAST,
    Calibration,
    FacetTable,
    FacetTables,
    calibrate,
    make_table,
    weigh,
    weights,
)
from callslip.retrieval.ranking.prior import CAP, prior
from callslip.stores.ledger import FacetValue, Ledger

pytest_plugins = ["ledger_fixtures"]

NEAR = Calibration(temperature=0.02, near=0.9, far=0.8)


@pytest.fixture
def library(ledger_url: str) -> Iterator[Library]:
    with closing(Ledger(ledger_url)) as ledger:
        ledger.create()
        made = Library(ledger)
        made.fill()
        made.rebuild("subject", "group")
        yield made


def table_of(library: Library, *facets: str) -> FacetTable:
    found = FacetTables(library.ledger.facet_values, facets).of("library", "", "words")
    assert found is not None
    return found


def value(name: str, vector: object, probes: object, *, apart: bool = True) -> FacetValue:
    return FacetValue("f", name, (), "", "", "m", np.asarray(vector), np.asarray(probes), apart, 1)


def test_a_question_about_one_value_favours_it(library: Library) -> None:
    table = table_of(library, "subject")
    for subject, reply in SUBJECTS.items():
        found = weights(embed(reply[1]), table, 2)["subject"]
        assert max(found, key=lambda v: found[v]) == subject
        assert found[subject] > 0.4
        assert all(LEAST <= weight <= 1 for weight in found.values())


def test_an_unrelated_question_favours_nothing(library: Library) -> None:
    for request in ("quantum chromodynamics", "zebra migration patterns", "x"):
        found = weights(embed(request), table_of(library, "subject"), 2)
        assert all(weight < 0.1 for weight in found.get("subject", {}).values())


def test_a_facet_that_says_nothing_about_the_text_favours_nothing(library: Library) -> None:
    found = FacetTables(library.ledger.facet_values, ["group"]).of("library", "", "words")
    for reply in SUBJECTS.values():
        assert (
            found is None
            or max(weights(embed(reply[0]), found, 2).get("group", {"": 0}).values()) < 0.2
        )


def test_only_so_many_values_of_a_facet_are_favoured() -> None:
    cosines = np.array([0.9, 0.89, 0.88, 0.8], np.float32)
    facet = [value(str(i), [c, 0], [[1, 0]]) for i, c in enumerate(cosines)]
    table = make_table({"f": (facet, NEAR)})
    request = np.array([1, 0], np.float32)
    assert list(weights(request, table, 1)["f"]) == ["0"]
    assert list(weights(request, table, 9)["f"]) == ["0", "1"]


def test_weights_are_chance_corrected_and_fall_with_distance() -> None:
    sure = weigh(np.array([0.95, 0.7, 0.7]), NEAR)
    assert sure[0] > 0.99
    assert sure[1:].max() == 0
    assert weigh(np.array([0.9, 0.9, 0.9]), NEAR).max() == 0  # which of them, nobody knows
    far = weigh(np.array([0.79, 0.6, 0.6]), NEAR)
    assert far.max() == 0  # the best of them is as far as others are
    half = weigh(np.array([0.85, 0.6, 0.6]), NEAR)
    assert half[0] == pytest.approx(0.5, abs=0.01)


def test_calibration_needs_values_that_can_be_told_apart() -> None:
    east, north = [1.0, 0.0], [0.0, 1.0]
    assert calibrate([]) is None
    assert calibrate([value("a", east, [east])]) is None
    assert (
        calibrate([value("a", east, np.empty((0, 2))), value("b", north, np.empty((0, 2)))]) is None
    )
    assert calibrate([value("a", east, [north]), value("b", north, [east])]) is None
    found = calibrate([value("a", east, [east]), value("b", north, [north])])
    assert found is not None
    assert (found.near, found.far) == (1.0, 0.0)


def test_probes_of_the_same_documents_count_only_where_there_are_too_few_others() -> None:
    east, north = [1.0, 0.0], [0.0, 1.0]
    honest = [value("a", east, [north] * 5), value("b", north, [east] * 5)]
    flattering = value("c", north, [north] * 9, apart=False)
    assert calibrate([*honest, flattering]) is None
    assert calibrate([honest[0], flattering]) is not None


def test_tables_are_read_again_when_the_ledger_changes(library: Library) -> None:
    tables = FacetTables(library.ledger.facet_values, ["subject"], check_seconds=0)
    first = tables.of("library", "", "words")
    assert tables.of("library", "", "words") is first
    library.add("A zebra stands here alone.", subject="zoo")
    library.rebuild()
    second = tables.of("library", "", "words")
    assert second is not None
    assert "zoo" in second.facets[0].values
    patient = FacetTables(library.ledger.facet_values, ["subject"], check_seconds=60)
    third = patient.of("library", "", "words")
    library.ledger.facet_values.drop(COLLECTION, "subject", ["zoo"])
    assert patient.of("library", "", "words") is third


def test_vectors_of_another_model_or_facet_are_not_used(library: Library) -> None:
    assert FacetTables(library.ledger.facet_values, ["subject"]).of("library", "", "e5") is None
    tables = FacetTables(library.ledger.facet_values, ["lang"], check_seconds=60)
    assert tables.of("library", "", "words") is None
    of_collection = tables.of("library", "", "words", ("subject",))
    assert of_collection is not None
    assert [facet.name for facet in of_collection.facets] == ["subject"]
    assert FacetTables(library.ledger.facet_values, ["lang"]).of("library", "", "words") is None
    assert FacetTables(library.ledger.facet_values, ["subject"]).of("other", "", "words") is None
    assert weights(np.ones(3, np.float32), table_of(library, "subject"), 2) == {}


def test_the_prior_is_the_capped_sum_over_facets() -> None:
    favoured = {"subject": {"pay": 0.6, "fire": 0.1}, "section": {"정의": 0.7}}
    assert prior({"subject": "fire"}, favoured, 0.2) == pytest.approx(0.02)
    assert prior({"subject": "pay", "section": "제2조(정의)"}, favoured, 0.2) == 0.2 * CAP
    assert prior({"subject": ["fire", "pay"]}, favoured, 0.2) == pytest.approx(0.12)
    assert prior({"subject": "leave"}, favoured, 0.2) == 0.0
    assert prior({}, favoured, 0.2) == 0.0
    assert prior({"subject": []}, favoured, 0.2) == 0.0


def test_without_weight_or_table_scores_are_the_same_to_the_last_bit() -> None:
    scores = np.random.default_rng(1).normal(size=1000).tolist()
    properties = {"subject": "pay"}
    assert [s + prior(properties, {"subject": {"pay": 0.9}}, 0.0) for s in scores] == scores
    assert [s + prior(properties, {}, 0.2) for s in scores] == scores
