"""Passages beside the best one that give the same answer, and those that give another one."""

from typing import Any

import pytest
from agent_parts import ANALYZER

from callslip.models.embedders.none import LexicalEmbedder
from callslip.retrieval.candidates.calibration import NO_SAMPLE
from callslip.retrieval.evidence.extracts import Target, extracts
from callslip.retrieval.evidence.rivals import agreeing, contradicting
from callslip.retrieval.evidence.sufficiency import weighed
from callslip.retrieval.messages import Hit, Legs, Span


def hit(chunk_id: str, text: str, document_id: str = "") -> Hit:
    fields: dict[str, Any] = {
        **{"rank": 1, "score": 1.0, "chunk_id": chunk_id, "document_id": document_id or chunk_id},
        **{"title": "", "filename": "a.txt", "section": "", "heading": "", "lang": "en"},
        **{"text": text, "span": Span(start=0, end=len(text)), "properties": {}, "level": 2},
        "legs": Legs(vector=None, keyword=None),
        **{"parent_id": None, "parent_of": None, "vector": None},
    }
    return Hit(**fields)


def target(question: str) -> Target:
    return Target(question, weighed(NO_SAMPLE, ANALYZER.analyze(question)), None)


QUESTION, ANSWER = "How many days of leave do parents get?", "Parents get 20 days of leave."
KOREAN, KOREAN_ANSWER = "육아휴직은 며칠인가요?", "육아휴직은 30일이다."


@pytest.mark.parametrize(
    ("question", "best", "other", "agrees", "contradicts"),
    [
        (QUESTION, ANSWER, "For parents twenty days are free.", True, False),
        (QUESTION, ANSWER, "Parents get 25 days of leave.", True, True),
        (QUESTION, ANSWER, "Parents get 20 euros for days of leave.", False, False),
        (QUESTION, ANSWER, "The library lends books for 25 days.", False, False),
        (QUESTION, ANSWER, "What do parents get?", False, False),
        ("Who gets leave?", "Parents get 20 days.", "Parents get 20 days of leave.", False, False),
        (
            *("When does the law apply?", "The law applies from 1 May 2024."),
            *("The law: 2024-05-01", True, False),
        ),
        (QUESTION, ANSWER, "Bins are emptied every 20 days.", False, False),
        (
            *("What is the parking fee in Region 5?", "The parking fee in Region 5 is 3 euros."),
            *("The parking fee in Region 6 is 9 euros.", False, False),
        ),
        (
            *("What is the speed limit?", "The speed limit is 30, fines are due in 14 days."),
            *("The speed limit is 50, fines are due in 30 days.", False, False),
        ),
        (KOREAN, KOREAN_ANSWER, "육아휴직 기간은 30일까지다.", True, False),
        (KOREAN, KOREAN_ANSWER, "육아휴직은 40일이다.", True, True),
        (KOREAN, KOREAN_ANSWER, "책은 40일 동안 빌린다.", False, False),
        ("얼마를 더 받나요?", "50만 원을 더 받는다.", "500,000원을 더 받게 된다.", True, False),
    ],
)
def test_a_passage_agrees_contradicts_or_is_a_rival(
    question: str, best: str, other: str, *, agrees: bool, contradicts: bool
) -> None:
    hits, embedder, wanted = [hit("a", best), hit("b", other)], LexicalEmbedder(), target(question)
    assert agreeing(hits, wanted, ANALYZER, embedder) == ({"b"} if agrees else set())
    (first,) = extracts(hits[:1], wanted, ANALYZER, embedder, 1)
    second = contradicting(first, hits, wanted, ANALYZER, embedder)
    assert (second.text if second else None) == (other if contradicts else None)


def test_a_document_does_not_contradict_itself() -> None:
    hits = [hit("a", ANSWER, "d"), hit("b", "Parents get 25 days of leave.", "d")]
    embedder = LexicalEmbedder()
    assert agreeing(hits, target(QUESTION), ANALYZER, embedder) == frozenset()
    (first,) = extracts(hits[:1], target(QUESTION), ANALYZER, embedder, 1)
    assert contradicting(first, hits, target(QUESTION), ANALYZER, embedder) is None


def test_without_a_hit_or_a_sentence_nothing_agrees() -> None:
    embedder = LexicalEmbedder()
    assert agreeing([], target(QUESTION), ANALYZER, embedder) == frozenset()
    hits = [hit("a", "How many days of leave?"), hit("b", ANSWER)]
    assert agreeing(hits, target(QUESTION), ANALYZER, embedder) == frozenset()
