"""Neither the prior nor memory harms what it has nothing to do with, on any judged set.

Specification 003 §9.3 and §9.4 ask for what they lift; this is the price. With CALLSLIP_TEST_SLOW=1
all of each set is asked, else a part: there one question of forty that falls from the first place
to the second costs .009, so that of a part by itself only the interval is judged, and of all
parts together the mean. docs/memory.md and docs/facets.md have whole sets.
"""

from statistics import fmean

import pytest
from judged_parts import LEARNING, LONGEST, PARTS, Measure, Tell, folder_of, sets
from long_forms import ALL, SLOW

pytestmark = pytest.mark.timeout(LONGEST)

MOST = 0.005
"""Of nDCG@10."""

PRIOR = "hybrid + prior"


SETS = ("own_en", "own_ko", *PARTS)
"""Of our laws every query asks for the same article as others, so that none is unrelated."""


@pytest.mark.long
@pytest.mark.parametrize("name", sets(*SETS))
@pytest.mark.parametrize("way", [PRIOR, LEARNING])
def test_what_is_added_harms_unrelated_questions_of_no_set(
    measured: Measure, tell: Tell, name: str, way: str
) -> None:
    row = next(row for row in measured(name).rows if row.variant == way)
    gain = row.gain
    assert gain is not None
    tell(
        f"{name}: {way}: {gain.mean:+.4f} nDCG@10 [{gain.low:+.4f}, {gain.high:+.4f}],"
        f" {row.queries} questions of {'all' if SLOW else 'a part'}"
    )
    assert (gain.mean if SLOW else gain.high) > -MOST


@pytest.mark.parametrize("way", [PRIOR, LEARNING])
def test_what_is_added_harms_no_unrelated_questions_over_all_sets(
    measured: Measure, tell: Tell, way: str
) -> None:
    names = [name for name in SETS if ALL or SLOW or name not in PARTS]
    here = [name for name in names if folder_of(name).is_dir()]
    rows = [row for name in here for row in measured(name).rows if row.variant == way]
    gains = [row.gain.mean for row in rows for _ in range(row.queries) if row.gain is not None]
    tell(f"{way}: {fmean(gains):+.4f} nDCG@10 over {len(gains)} questions of {len(rows)} sets")
    assert fmean(gains) > -MOST
