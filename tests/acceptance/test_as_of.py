"""Who asks for a day gets what was in force that day, and nothing else (spec 003 §9.5)."""

from datetime import date
from statistics import fmean
from typing import Any

import pytest
from judged_parts import LONGEST, Hold, Tell, sets

from callslip.evals.client import JsonClient

pytestmark = pytest.mark.timeout(LONGEST)

QUERIES = {
    "own_law_versions": "{day.year}년 {day.month}월 {day.day}일 기준 {text}",
    "own_rule_versions": "As of {day}, {text}",
    "ko_law_versions": "{day.year}년 {day.month}월 {day.day}일 기준 {text}",
    "en_rfc_small": "As of {day}, {text}",
}
"""How a question of each set says when."""


@pytest.mark.long
@pytest.mark.parametrize("name", sets(*QUERIES))
def test_a_question_as_of_a_day_is_never_given_what_is_not_in_force(
    client: JsonClient, held: Hold, tell: Tell, name: str
) -> None:
    loaded = held(name)
    judged = loaded.judged
    in_force = {d.document_id: _in_force(d.metadata) for d in judged.corpus()}
    filtered, free = [], []
    for query, text in judged.queries.items():
        day = date.fromisoformat(judged.as_of[query])
        question = QUERIES[name].format(day=day, text=text)
        found = _documents(client, loaded.collection, question)
        wrong = [d for i in found if not in_force[d := loaded.ids[i]][0] <= str(day)]
        wrong += [d for i in found if not str(day) < in_force[d := loaded.ids[i]][1]]
        assert wrong == [], question
        filtered.append(judged.qrels[query].get(loaded.ids[found[0]], 0) > 0)
        (first,) = _documents(client, loaded.collection, text, top=1, as_of="any")
        free.append(judged.qrels[query].get(loaded.ids[first], 0) > 0)
    tell(
        f"validity filter, {name}: success@1 {fmean(free):.3f} without, {fmean(filtered):.3f} with"
        f" the day in the question, {len(filtered)} questions"
    )
    assert fmean(filtered) >= 0.9
    assert fmean(filtered) > fmean(free)


def _in_force(metadata: dict[str, Any]) -> tuple[str, str]:
    """From and until when, as days or months, which compare as texts."""
    return metadata.get("valid_from") or "", metadata.get("valid_to") or "9999"


def _documents(
    client: JsonClient, collection: str, question: str, top: int = 100, **more: str
) -> list[str]:
    """The server's ids of the documents of the hits, best first."""
    hits = client.search({"collection": collection, "query": question, "top": top, **more})["hits"]
    return [hit["document_id"] for hit in hits]
