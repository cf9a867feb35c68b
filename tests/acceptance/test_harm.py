"""Neither the prior nor memory harms what it has nothing to do with, on any judged set.

Specification 003 §9.3 and §9.4 ask for what they lift; this is the price. A part of each set is
asked, all of it with CALLSLIP_TEST_SLOW=1; docs/memory.md and docs/facets.md have whole sets.
"""

import pytest
from judged_parts import LEARNING, LONGEST, PARTS, Measure, Tell

pytestmark = pytest.mark.timeout(LONGEST)

MOST = 0.005
"""Of nDCG@10."""


@pytest.mark.parametrize("name", PARTS)
def test_prior_and_memory_harm_unrelated_questions_of_no_set(
    measured: Measure, tell: Tell, name: str
) -> None:
    rows = {row.way: row for row in measured(name).rows}
    gains = {way: rows[way].gain for way in ("hybrid + prior", LEARNING)}
    for way, gain in gains.items():
        assert gain is not None
        tell(
            f"{name}: {way}: {gain.mean:+.4f} nDCG@10 [{gain.low:+.4f}, {gain.high:+.4f}],"
            f" {rows[way].queries} questions"
        )
    assert min(gain.mean for gain in gains.values() if gain is not None) > -MOST
