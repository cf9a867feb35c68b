"""Judged sets as the suite asks them: our own whole, of others a part of each.

`make test` searches our own sets, `make test-all` the parts of the others too, and with
CALLSLIP_TEST_SLOW=1 each set is searched whole.
"""

import json
import zlib
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from long_forms import ALL, SLOW
from stack import Stack

from benchmarks.quality.table import Quality
from callslip.evals import beir
from callslip.retrieval.ranking.memory import FEWEST_QUESTIONS
from callslip.stores.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]

DATA = ROOT.parent / "shared" / "data"
"""Where sets of others are, on some machines."""

OWN = ROOT / "tests" / "data" / "judged"
"""Our own sets, small, which are in every clone."""

in_test_all = pytest.mark.skipif(not (ALL or SLOW), reason="`make test-all` measures it")

T = TypeVar("T")

LONGEST = 14_400 if SLOW else 900
"""Seconds for the test that comes to a set first: all of en_rfc_small takes an hour to embed."""

GROUPS = 4
"""Values of the made-up facet `group`, which says nothing of what is in a document."""


@dataclass(frozen=True)
class Part:
    """How much of a set: `groups` of queries with judged documents in common, and all these;
    `documents` with others, `queries` at most, `chars` of each text."""

    groups: int
    documents: int
    queries: int
    chars: int | None = None


PARTS = {
    "en_xquad": Part(groups=120, documents=120, queries=120),
    "ko_autorag": Part(groups=114, documents=150, queries=114),
    "en_stackfaq": Part(groups=40, documents=40, queries=160, chars=1500),
    "en_scifact": Part(groups=50, documents=60, queries=50, chars=700),
    "ko_law_versions": Part(groups=16, documents=60, queries=40, chars=300),
    "en_rfc_small": Part(groups=15, documents=40, queries=40, chars=1000),
}
"""So much that all of it is embedded in two minutes; long texts are cut."""

OURS = ("own_en", "own_ko", "own_law_versions", "own_rule_versions")


def sets(*names: str) -> list[object]:
    """Parameters of a test: sets by name; those of others are for `make test-all`."""
    return [pytest.param(name, marks=in_test_all) if name in PARTS else name for name in names]


def folder_of(name: str) -> Path:
    """Where a set is, if it is here."""
    return (OWN if name in OURS else DATA) / name


@dataclass(frozen=True)
class Held:
    """A set that was ingested. `ids` are the server's document ids to the set's."""

    collection: str
    judged: beir.JudgedSet
    ids: Mapping[str, str]


Hold = Callable[[str], Held]
Measure = Callable[[str], Quality]
Tell = Callable[[str], None]

LEARNING = "hybrid + memory, unrelated"
"""The way that asks what memory has not learned from."""


def tend(stack: Stack) -> None:
    """The hourly upkeep of memory: from now on it is known what all questions have in common."""
    with closing(Ledger(stack.settings.ledger_url)) as ledger:
        ledger.memory.centre(FEWEST_QUESTIONS)


def part_of(name: str, folder: Path) -> beir.JudgedSet:
    """Write the part of a set, or all of it, with the facet `group`; at `folder`, which is new."""
    whole = beir.read(folder_of(name))
    corpus = {document.document_id: document for document in whole.corpus()}
    part = None if SLOW else PARTS.get(name)
    chosen = _asked(whole, part) if part else whole
    kept = _kept(chosen, list(corpus), part.documents) if part else set(corpus)
    folder.mkdir(parents=True)
    chars = part.chars if part else None
    _write(folder / beir.CORPUS, [_line(d, chars) for i, d in corpus.items() if i in kept])
    times = {query: {"as_of": moment} for query, moment in chosen.as_of.items()}
    _write(
        folder / beir.QUERIES,
        [{"_id": q, "text": t, "metadata": times.get(q, {})} for q, t in chosen.queries.items()],
    )
    rows = (f"{q}\t{d}\t{g}\n" for q, grades in chosen.qrels.items() for d, g in grades.items())
    (folder / beir.QRELS[0]).write_text("".join(rows))
    return beir.read(folder)


def _asked(whole: beir.JudgedSet, part: Part) -> beir.JudgedSet:
    """The queries of groups that are spread over the set."""
    groups: list[tuple[set[str], set[str]]] = []
    for query, grades in whole.qrels.items():
        queries, documents = {query}, set(grades)
        for group in [g for g in groups if g[1] & documents]:
            queries, documents = queries | group[0], documents | group[1]
            groups.remove(group)
        groups.append((queries, documents))
    chosen = spread([queries for queries, _ in groups], part.groups)
    return whole.only(set().union(*chosen)).at_most(part.queries)


def _kept(chosen: beir.JudgedSet, corpus: list[str], documents: int) -> set[str]:
    """All judged documents, as the wrong ones are the hard ones, and others of the rest."""
    judged = {d for grades in chosen.qrels.values() for d in grades}
    others = [document_id for document_id in corpus if document_id not in judged]
    return judged | set(spread(others, max(0, documents - len(judged))))


def spread(items: list[T], count: int) -> list[T]:
    """That many of the items, evenly."""
    count = min(count, len(items))
    return [items[n * len(items) // count] for n in range(count)]


def _line(document: beir.Document, chars: int | None) -> dict[str, object]:
    group = f"group {zlib.crc32(document.document_id.encode()) % GROUPS}"
    return {
        "_id": document.document_id,
        "title": document.title,
        "text": document.text.strip()[:chars],
        "metadata": {**document.metadata, "group": group},
    }


def _write(path: Path, lines: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
