"""Leaning on words and leaning on meaning give other candidates, both plausible (spec 003 §9.2)."""

from statistics import fmean

import pytest
from judged_parts import LONGEST, Hold, Tell, sets

from callslip.evals.client import JsonClient
from callslip.evals.measures import rank_documents

pytestmark = pytest.mark.timeout(LONGEST)

ENTITY_HEAVY, SEMANTIC = 0.25, 0.6

QUESTIONS = 40


@pytest.mark.long
@pytest.mark.parametrize("name", sets("own_en", "own_ko", "en_xquad", "ko_autorag"))
def test_two_tilts_give_different_candidates_that_both_hold_the_answer(
    client: JsonClient, held: Hold, tell: Tell, name: str
) -> None:
    loaded = held(name)
    judged = loaded.judged.at_most(QUESTIONS)
    differ: list[bool] = []
    kept: dict[float, list[bool]] = {ENTITY_HEAVY: [], SEMANTIC: []}
    for query, text in judged.queries.items():
        found = []
        for alpha, answered in kept.items():
            body = {"collection": loaded.collection, "query": text, "top": 20, "alpha": alpha}
            hits = client.search({**body, "ranking": {"exploration_ratio": 0}})["hits"]
            found.append({hit["chunk_id"] for hit in hits})
            best = list(rank_documents(loaded.ids[hit["document_id"]] for hit in hits[:10]))
            answered.append(any(judged.qrels[query].get(document_id) for document_id in best))
        differ.append(found[0] != found[1])
    shares = {alpha: fmean(answered) for alpha, answered in kept.items()}
    output = ", ".join(f"alpha {alpha}: {share:.2f}" for alpha, share in shares.items())
    tell(
        f"hybrid sanity, {name}: the top 20 differ for {fmean(differ):.2f} of {len(differ)}"
        f" questions; the answer is in the top 10, {output}"
    )
    assert fmean(differ) >= 0.5
    assert min(shares.values()) >= 0.9
