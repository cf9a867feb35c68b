"""Retrieval is as good as promised, through the whole chain and the desk."""

import os
from pathlib import Path

import pytest
from stack import Stack

from evals.client import Desk
from evals.judge import evaluate
from evals.report import table

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"

needs_time = pytest.mark.skipif(
    os.environ.get("CALLSLIP_TEST_SLOW") != "1",
    reason="embeds for ten minutes and more: set CALLSLIP_TEST_SLOW=1 to run it",
)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("en_xquad", {"hybrid": 0.975}),
        ("en_stackfaq", {"hybrid": 0.89}),
        ("ko_autorag", {"hybrid": 0.92, "keyword": 0.92}),
        pytest.param("en_scifact", {"hybrid": 0.71}, marks=needs_time),
    ],
)
@pytest.mark.timeout(3600)
def test_ndcg_at_10_on_a_judged_set(stack: Stack, name: str, least: dict[str, float]) -> None:
    folder = DATA / name
    if not folder.is_dir():
        pytest.skip(f"the judged set {name} is not here: {folder}")
    with Desk(stack.url) as desk:
        report = evaluate(folder, desk)
    reached = {leg: found.measures["ndcg@10"] for leg, found in report.legs.items()}
    short = {
        leg: reached[leg] for leg, least_of_leg in least.items() if reached[leg] < least_of_leg
    }
    assert not short, table(report)
