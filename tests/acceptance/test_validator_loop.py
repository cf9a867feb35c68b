"""Hard questions cause at most two other ways, and then an answer or none (spec 003 §9.7)."""

from typing import Any

import pytest
from judged_parts import DATA, LONGEST, Hold, Tell

from evals import beir
from evals.answers import passage
from evals.client import Desk

pytestmark = pytest.mark.timeout(LONGEST)

ASKED = 60
"""Questions of each kind."""


def test_what_the_documents_do_not_say_ends_after_two_loops_without_an_answer(
    desk: Desk, held: Hold, tell: Tell
) -> None:
    shelf = held("en_xquad")
    whole, spans = beir.read(DATA / "en_xquad"), beir.read_spans(DATA / "en_xquad")
    here = set(shelf.ids.values())
    elsewhere = [q for q, judged in whole.qrels.items() if not here & judged.keys()]
    possible = list(shelf.judged.queries)
    path = f"/v1/collections/{shelf.collection}"
    try:
        answers = {
            query: desk.post(
                "/v1/answer", {"collection": shelf.collection, "question": whole.queries[query]}
            )
            for query in (*possible[:ASKED], *_spread(elsewhere))
        }
    finally:
        desk.post(f"{path}/memory/reset", {})
    for answer in answers.values():
        assert 1 <= len(answer["attempts"]) <= 3
        assert answer["attempts"][-1]["verdict"]["action"] is None
        assert answer["answered"] == bool(answer["citations"])
    right = [_says(desk, answers[query], spans[query]) for query in possible[:ASKED]]
    wrong = [answers[query]["answered"] for query in _spread(elsewhere)]
    tell(
        f"validator, en_xquad: {sum(right) / len(right):.3f} of {len(right)} answered rightly,"
        f" {sum(wrong) / len(wrong):.3f} of {len(wrong)} unanswerable ones answered"
    )
    assert sum(right) / len(right) >= 0.75
    assert sum(wrong) / len(wrong) <= 0.2


def _spread(queries: list[str]) -> list[str]:
    return queries[:: max(1, len(queries) // ASKED)][:ASKED]


def _says(desk: Desk, answer: dict[str, Any], spans: list[str]) -> bool:
    """Whether a passage that is cited has the words that answer."""
    passages = [passage(desk, citation) for citation in answer["citations"]]
    return any(span in text for text in passages for span in spans)
