"""The soft prior on real passages with the real embedder: it lifts what fits and harms nothing.

Specification 003 §9.3. It prints the effect sizes; docs/facets.md has those of whole sets.
"""

import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from facet_parts import Library

from evals import beir
from evals.measures import measure, rank_documents
from models.e5 import E5Embedder
from models.registry import make_analyzer
from models.tokens import Tokenizer
from retrieval.facet_weights import FacetTables, Weights, weights
from retrieval.prior import prior
from stores.fusion import Candidate
from stores.ledger import Ledger

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "ko_autorag"
PER_DOMAIN, CHARS, WEIGHT = 24, 250, 0.2
NONE = {"": 0.0}

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"{FOLDER} is missing")


@dataclass(frozen=True)
class Asked:
    """A question: its candidates, and what it is about, by facet."""

    query_id: str
    candidates: list[Candidate]
    weights: Weights


@dataclass(frozen=True)
class Shelves:
    """Passages with a facet that matters, `domain`, and one that does not, `shelf`."""

    library: Library
    asked: list[Asked]
    qrels: dict[str, dict[str, int]]
    pages: dict[str, dict[str, Any]]

    def ranked(self, one: Asked, facet: str, weight: float) -> list[str]:
        """The candidates' chunk ids, best first."""
        favoured = {facet: one.weights[facet]} if facet in one.weights else {}
        scored = [
            (-c.score - prior(self.pages[c.chunk_id], favoured, weight), n, c.chunk_id)
            for n, c in enumerate(one.candidates)
        ]
        return [chunk_id for *_, chunk_id in sorted(scored)]

    def ndcg(self, facet: str, weight: float) -> float:
        run = {
            one.query_id: rank_documents(
                self.pages[i]["page"] for i in self.ranked(one, facet, weight)
            )
            for one in self.asked
        }
        return measure(self.qrels, run)["ndcg@10"]


@pytest.fixture(scope="module")
def shelves(models_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelves]:
    judged = beir.read(FOLDER)
    embedder = E5Embedder(models_dir, Tokenizer(models_dir))
    analyzer = make_analyzer()
    queries = dict(list(judged.queries.items())[::3])
    qrels = {query_id: dict(judged.qrels[query_id]) for query_id in queries}
    answers = {document_id for graded in qrels.values() for document_id in graded}
    url = f"sqlite:///{tmp_path_factory.mktemp('prior') / 'ledger.db'}"
    with closing(Ledger(url)) as ledger:
        ledger.create()
        library, held = Library(ledger, embedder=embedder), Counter[str]()
        for document in sorted(judged.corpus(), key=lambda d: d.document_id not in answers):
            domain = document.metadata["domain"]
            if document.document_id in answers or held[domain] < PER_DOMAIN:
                held[domain] += 1
                text = document.content[:CHARS]
                library.add(
                    text,
                    vector=embedder.passages([text])[0],
                    terms=analyzer.analyze(text),
                    domain=domain,
                    shelf=f"shelf {zlib.crc32(document.document_id.encode()) % 4}",
                    page=document.document_id,
                )
        library.rebuild("domain", "shelf")
        tables = FacetTables(ledger.facet_values, ["domain", "shelf"])
        table = tables.of("library", "", embedder.model)
        assert table is not None
        asked = []
        for query_id, text in queries.items():
            vector = embedder.query(text)
            found = library.store.hybrid_query(
                "library", vector, analyzer.analyze(text), 200, pool=100
            )
            asked.append(Asked(query_id, found, weights(vector, table, 2)))
        ids = library.store.find_ids("library")
        pages = library.store.properties("library", ids, ["domain", "shelf", "page"])
        yield Shelves(library, asked, qrels, pages)


def tell(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with capsys.disabled():
        sys.stderr.write(f"\nsoft prior: {text}\n")


def test_passages_of_the_favoured_value_rise_five_ranks_on_average(
    shelves: Shelves, capsys: pytest.CaptureFixture[str]
) -> None:
    rises = []
    for one in shelves.asked:
        favoured = one.weights.get("domain", {})
        if favoured:
            best = next(iter(favoured))
            before = {i: n for n, i in enumerate(shelves.ranked(one, "domain", 0.0))}
            after = {i: n for n, i in enumerate(shelves.ranked(one, "domain", WEIGHT))}
            rises += [before[i] - after[i] for i in before if shelves.pages[i]["domain"] == best]
    lift = float(np.mean(rises))
    tell(capsys, f"{len(rises)} passages of the favoured domain rise {lift:.1f} ranks on average")
    assert lift >= 5


def test_a_prior_on_what_says_nothing_harms_no_ranking(
    shelves: Shelves, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a facet that means something it is only told: 38 queries are too few to judge by."""
    before = shelves.ndcg("shelf", 0.0)
    domain, shelf = (shelves.ndcg(facet, WEIGHT) for facet in ("domain", "shelf"))
    tell(capsys, f"nDCG@10 {before:.4f}, prior on domain {domain:.4f}, on shelf {shelf:.4f}")
    assert shelf > before - 0.005


def test_a_shelf_that_says_nothing_is_hardly_favoured_and_the_domain_is(
    shelves: Shelves, capsys: pytest.CaptureFixture[str]
) -> None:
    def mean(facet: str) -> float:
        return float(
            np.mean([max(a.weights.get(facet, {"": 0.0}).values()) for a in shelves.asked])
        )

    tell(capsys, f"greatest weight: domain {mean('domain'):.2f}, shelf {mean('shelf'):.2f}")
    assert mean("domain") > 0.2
    assert mean("shelf") < 0.05


def test_without_weight_the_ranking_is_the_same(shelves: Shelves) -> None:
    for one in shelves.asked:
        assert shelves.ranked(one, "domain", 0.0) == [c.chunk_id for c in one.candidates]
