"""Hard questions cause at most two other ways, and then an answer or none (spec 003 §9.7)."""

from collections import Counter
from typing import Any

import pytest
from judged_parts import LONGEST, OURS, Hold, Tell, folder_of, sets

from benchmarks.quality.answers import passage
from callslip.evals import beir
from callslip.evals.client import JsonClient

pytestmark = pytest.mark.timeout(LONGEST)

QUERIES = 60
"""Questions of each kind."""

OTHERS = {
    f"other-{number}": text
    for number, text in enumerate(
        (
            "Who designed the bridge over the northern canal?",
            "Which team won the handball championship in 1987?",
            "What is the boiling point of ethanol?",
            "When was the observatory on the hill founded?",
            "How many members does the brass band have?",
            "Who wrote the novel about the lighthouse keeper?",
            "Which airline flies to Reykjavik in winter?",
            "What is the capital of Mongolia?",
            "How deep is the lake behind the old mill?",
            "Which composer was born in Salzburg in 1756?",
        )
    )
}
"""Questions that none of our own texts answers."""


@pytest.mark.long
@pytest.mark.parametrize("name", sets("own_en", "en_xquad"))
def test_what_the_documents_do_not_say_ends_after_two_loops_without_an_answer(
    client: JsonClient, held: Hold, tell: Tell, name: str
) -> None:
    loaded = held(name)
    spans = beir.read_spans(folder_of(name))
    texts = beir.read(folder_of(name)).queries | OTHERS
    here = set(loaded.ids.values())
    elsewhere = list(OTHERS) if name in OURS else _unanswerable(name, here)
    possible = list(loaded.judged.queries)
    if name in OURS:  # where several queries ask for an answer they use other words
        several = Counter(answer for query in possible for answer in loaded.judged.qrels[query])
        possible = [q for q in possible if max(map(several.get, loaded.judged.qrels[q])) == 1]
    path = f"/v1/collections/{loaded.collection}"
    try:
        answers = {
            query: client.post(
                "/v1/answer", {"collection": loaded.collection, "question": texts[query]}
            )
            for query in (*possible[:QUERIES], *_spread(elsewhere))
        }
    finally:
        client.post(f"{path}/memory/reset", {})
    for answer in answers.values():
        assert 1 <= len(answer["attempts"]) <= 3
        assert answer["attempts"][-1]["verdict"]["action"] is None
        assert answer["answered"] == bool(answer["citations"])
    right = [_says(client, answers[query], spans[query]) for query in possible[:QUERIES]]
    wrong = [answers[query]["answered"] for query in _spread(elsewhere)]
    tell(
        f"validator, {name}: {sum(right) / len(right):.3f} of {len(right)} answered rightly,"
        f" {sum(wrong) / len(wrong):.3f} of {len(wrong)} unanswerable ones answered"
    )
    assert sum(right) / len(right) >= 0.75
    assert sum(wrong) / len(wrong) <= 0.2


def _unanswerable(name: str, here: set[str]) -> list[str]:
    """Queries of a set whose documents are all in its other parts."""
    return [q for q, grades in beir.read(folder_of(name)).qrels.items() if not here & grades.keys()]


def _spread(queries: list[str]) -> list[str]:
    return queries[:: max(1, len(queries) // QUERIES)][:QUERIES]


def _says(client: JsonClient, answer: dict[str, Any], spans: list[str]) -> bool:
    """Whether a passage that is cited has the words that answer."""
    passages = [passage(client, citation) for citation in answer["citations"]]
    return any(span in text for text in passages for span in spans)
