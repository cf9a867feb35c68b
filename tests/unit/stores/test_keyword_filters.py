"""A search of passages in the keyword index has the hits of a filter that lists what passes."""

import random
from pathlib import Path

import pytest

from callslip.stores.fulltext.contract import Entry
from callslip.stores.fulltext.index import KeywordIndex
from callslip.stores.levels import PASSAGES
from callslip.stores.properties.filters import Condition, Where

NUMBER = 600

ABOVE_SECTIONS = Condition("level", ">", 1.0)
"""The same chunks as PASSAGES by another condition, which is translated as any other one."""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> KeywordIndex:
    """An index of chunks of all levels."""
    folder: Path = tmp_path_factory.mktemp("keyword") / "c"
    made, draw = KeywordIndex(folder, "c"), random.Random(5)
    made.create()
    made.upsert(
        [
            Entry(
                f"c{i:03}",
                " ".join(f"w{int(draw.expovariate(0.2))}" for _ in range(draw.randint(3, 30))),
                {"level": draw.choice((0, 1, 2, 2, 2, 2)), "kind": f"k{i % 3}"},
            )
            for i in range(NUMBER)
        ]
    )
    return made


@pytest.mark.parametrize("terms", ["w0", "w1 w7", "w0 w0 w3 w30 w2", "w20 none", "none", ""])
@pytest.mark.parametrize(
    ("every", "some"),
    [
        ((), ()),
        ((Condition("kind", "==", "k1"),), ()),
        ((), (Condition("kind", "==", "k1"), Condition("kind", "==", "k2"))),
    ],
    ids=["passages alone", "and a kind", "and one of two kinds"],
)
def test_passages_are_searched_as_by_any_other_filter(
    index: KeywordIndex,
    terms: str,
    every: tuple[Condition, ...],
    some: tuple[Condition, ...],
) -> None:
    fast, slow = Where((*every, PASSAGES), some), Where((*every, ABOVE_SECTIONS), some)
    for limit in (5, NUMBER):
        expected = index.search(terms, limit, slow)
        assert index.search(terms, limit, fast) == expected
    assert bool(expected) == (terms not in ("", "none"))
    ids = [f"c{i:03}" for i in range(0, NUMBER, 7)]
    assert index.ids_among(ids, fast) == index.ids_among(ids, slow)
