"""Both spellings of a Korean compound find the same (spec 003 §9.6: .6 of the top 20)."""

from statistics import fmean

import pytest
from judged_parts import LONGEST, Hold, Tell, sets

from benchmarks.quality import spacing
from callslip.evals.client import JsonClient

pytestmark = pytest.mark.timeout(LONGEST)

COMPOUNDS = 30


@pytest.mark.parametrize("name", sets("own_ko", "ko_autorag", "ko_law_versions"))
def test_both_spellings_of_a_compound_share_their_hits(
    client: JsonClient, held: Hold, tell: Tell, name: str
) -> None:
    loaded = held(name)
    texts = (document.content for document in loaded.judged.corpus())
    found = spacing.compounds(texts, COMPOUNDS)
    shared = [spacing.shared(client, loaded.collection, compound) for compound in found]
    tell(
        f"spacing, {name}: {fmean(shared):.3f} of the top {spacing.TOP} are shared, at least"
        f" {min(shared):.2f}, {len(found)} compounds"
    )
    assert len(found) == COMPOUNDS
    assert fmean(shared) >= 0.9
    assert min(shared) >= 0.6
