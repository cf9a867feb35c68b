"""How similar the hits of both spellings of a Korean compound are: 출산장려금, 출산 장려금.

The compounds are the most frequent ones in a judged set's texts. The benchmark searches for each in
both spellings, in a collection with that set.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from benchmarks.quality.judged_collections import connected
from callslip.errors import CallslipError
from callslip.evals.beir import read_corpus
from callslip.evals.client import JsonClient
from callslip.evals.tables import table
from callslip.languages.ko.morphemes import MORPHEMES, Morpheme

TOP = 20
"""The number of compared hits; specification 003 §9.6 requires .6 in common, Callslip .9."""

_BEGINNING = 900
_NOUNS = ("NNG", "NNP")
_HANGUL = re.compile("[가-힣]{2,}")
_LETTERS = range(4, 11)


@dataclass(frozen=True)
class Compound:
    """Consecutive nouns without a space, and the same nouns with spaces."""

    joined: str
    spaced: str


def main() -> None:
    """Search and print; after an error of the server, print it and exit with 1."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality.spacing",
        description=__doc__,
        epilog="Example: python -m benchmarks.quality.spacing sets/ko_autorag"
        " --collection ko_autorag",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="a judged set")
    parser.add_argument("--collection", required=True, help="what holds it")
    parser.add_argument("--most", type=int, default=100, help="compounds that are asked for")
    parser.add_argument("--url", help="of the server; default: the one of the settings")
    options = parser.parse_args()
    try:
        texts = (document.content for document in read_corpus(options.folder))
        pairs = compounds(texts, options.most)
        with connected(options.url) as client:
            shares = [shared(client, options.collection, compound) for compound in pairs]
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")
    print(_report(pairs, shares))


def compounds(texts: Iterable[str], most: int) -> list[Compound]:
    """Return the most frequent compounds of at least two nouns and 4 to 10 syllables.

    The most frequent compound is the first.
    """
    counted: Counter[Compound] = Counter()
    for text in texts:
        run: list[Morpheme] = []
        for token in MORPHEMES.get().of(text[:_BEGINNING]):
            noun = token.tag in _NOUNS and _HANGUL.fullmatch(token.form) is not None
            if noun and (not run or run[-1].end == token.start):
                run.append(token)
                continue
            counted.update(_compound(run))
            run = [token] if noun else []
        counted.update(_compound(run))
    return [c for c, _ in sorted(counted.items(), key=lambda n: (-n[1], n[0].joined))[:most]]


def _compound(run: list[Morpheme]) -> list[Compound]:
    parts = [token.form for token in run]
    if len(parts) < 2 or len("".join(parts)) not in _LETTERS:
        return []
    return [Compound("".join(parts), " ".join(parts))]


def shared(client: JsonClient, collection: str, compound: Compound) -> float:
    """Return the share of the first TOP hits that both spellings have in common."""
    one, other = (
        {hit["chunk_id"] for hit in client.post("/v1/search", body)["hits"]}
        for body in (
            {"collection": collection, "query": query, "top": TOP}
            for query in (compound.joined, compound.spaced)
        )
    )
    return len(one & other) / max(len(one), len(other), 1)


def _report(pairs: list[Compound], shares: list[float]) -> str:
    good = sum(share >= 0.9 for share in shares)
    rows = [[str(len(pairs)), f"{fmean(shares):.3f}", f"{good / len(pairs):.0%}"]]
    worst = sorted(zip(shares, pairs, strict=True), key=lambda pair: pair[0])[:5]
    lines = "\n".join(f"- {c.joined} / {c.spaced}: {share:.2f}" for share, c in worst)
    head = ["compounds", f"shared of the top {TOP}", "with .9 or more"]
    return f"{table(head, rows)}\n\n{lines}"
