"""How often the validator stops each class of wrong replies, and how often it drops good ones."""

from collections import Counter

import pytest

from benchmarks.quality.grounding import KINDS, Counts, cases, measure, rate, report
from callslip.models.embedders.none import LexicalEmbedder

HALVES = ("design", "check")
LEAST = {
    "number": 0.95,
    "entity": 0.95,
    "negation": 0.95,
    "claim": 0.9,
    "citation": 0.95,
    "language": 1.0,
    "command": 0.95,
}


@pytest.fixture(scope="module")
def counts() -> Counts:
    return measure(LexicalEmbedder())


def test_the_suite_has_120_replies_of_each_class_half_of_them_korean() -> None:
    every = cases()
    assert every == cases()
    count = Counter((case.kind, case.lang) for case in every)
    assert all(count[kind, lang] == 60 for kind in LEAST for lang in ("en", "ko"))
    assert all(count["paraphrase", lang] >= 60 for lang in ("en", "ko"))
    assert set(LEAST) | {"paraphrase"} == set(KINDS)
    good = {case.sentence for case in every if case.kind == "paraphrase"}
    wrong = [c for c in every if c.kind in ("number", "entity", "negation", "claim", "command")]
    assert not good & {case.sentence for case in wrong}
    assert len({(case.kind, case.sentence) for case in wrong}) == len(wrong)


@pytest.mark.long
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("kind", LEAST)
def test_wrong_replies_are_stopped(counts: Counts, kind: str, half: str) -> None:
    assert rate(counts, kind, half) >= LEAST[kind]


@pytest.mark.parametrize("half", HALVES)
def test_good_paraphrases_survive(counts: Counts, half: str) -> None:
    assert rate(counts, "paraphrase", half) <= 0.1


def test_the_table_has_a_row_for_each_class(counts: Counts) -> None:
    lines = report(counts).splitlines()
    assert len(lines) == len(KINDS) + 2
    assert lines[3].startswith("| wrong numbers | 120 |")
