"""The numbers that a score is linear in give the score back."""

import numpy as np
import pytest

from callslip.config.settings import Settings
from callslip.messages.options import Ranking
from callslip.retrieval.messages import SearchRequest
from callslip.retrieval.query.parameters import RankingParameters, ranking_parameters
from callslip.retrieval.ranking.features import Features, features
from callslip.retrieval.ranking.scored import Scored, fused
from callslip.retrieval.tuning.examples import Weights
from callslip.stores.fusion import Scale, fuse

ALPHA = 0.4
SCALE = Scale(mean=0.8, deviation=0.01, most=20.0)


def numbers(**changed: object) -> RankingParameters:
    request = SearchRequest.model_validate({"collection": "papers", "query": "q"})
    fixed: dict[str, object] = {"alpha": ALPHA} | changed
    return ranking_parameters(Settings(), Ranking.model_validate(fixed), request)


def ranked(alpha: float = 0.4) -> list[Scored]:
    """Found by both legs, by the vector leg alone, by words alone; with all parts."""
    legs = [("both", 0.86), ("near", 0.83)], [("both", 8.0), ("words", 19.0)]
    found = fused(fuse(*legs, alpha=alpha, scale=SCALE))
    parts = {"proximity": 0.03, "rerank": -0.02, "prior": 0.04, "memory": 0.06}
    for name, value in parts.items():
        found = [scored.plus(name, value) for scored in found]
    return found


def score_of(row: Features, weights: Weights, chosen: float) -> float:
    (score,) = weights.scores(np.array([row], np.float64), np.array([chosen]))
    return float(score)


@pytest.mark.parametrize("alpha", [ALPHA, None])
def test_features_with_the_weights_that_held_is_the_score(alpha: float | None) -> None:
    given = numbers()
    weights = Weights(alpha, given.proximity, given.facets_weight, given.memory_weight)
    for scored in ranked():
        row = features(scored, ALPHA, given, SCALE)
        assert score_of(row, weights, ALPHA) == pytest.approx(scored.score, abs=1e-5)


def test_features_with_another_alpha_is_the_score_that_it_would_give() -> None:
    given, other = numbers(), {s.chunk_id: s.parts["fused"] for s in ranked(0.7)}
    weights = Weights(0.7, 0, 0, 0)
    for scored in ranked():
        row = features(scored, ALPHA, given, SCALE)._replace(rest=0.0)
        found = score_of(row, weights, ALPHA)
        assert found == pytest.approx(other[scored.chunk_id], abs=1e-5)


def test_what_a_weight_of_nought_would_do_is_not_known() -> None:
    scored = fused(fuse([("near", 0.83)], [], scale=SCALE))[0]
    off = numbers(proximity=0, facets_weight=0, memory_weight=0)
    row = features(scored, 0.4, off, SCALE)
    assert (row.proximity, row.facets, row.memory) == (None, None, None)
    assert row.vector is not None


@pytest.mark.parametrize(
    ("alpha", "fusion", "scale"),
    [(0.0, "calibrated", SCALE), (0.4, "weighted", SCALE), (0.4, "calibrated", None)],
)
def test_retrievers_that_are_not_weighed_leave_the_fused_score_as_it_is(
    alpha: float, fusion: str, scale: Scale | None
) -> None:
    (scored, *_) = ranked()
    found = features(scored, alpha, numbers(fusion=fusion), scale)
    assert (found.vector, found.keyword) == (None, None)
    assert found.rest == pytest.approx(scored.parts["fused"] - 0.02, abs=1e-6)
    assert len(found) == len(Features._fields) == 6
