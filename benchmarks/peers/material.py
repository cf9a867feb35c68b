"""The documents, queries and judgements of a run, made from judged sets."""

import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from callslip.config.settings import ChunkingSettings
from callslip.errors import EvaluationError
from callslip.evals import beir
from callslip.ingestion.chunks.chunk import chunk
from callslip.ingestion.sections.sectionize import sectionize
from callslip.ingestion.values import ExtractedText
from callslip.models.e5.tokens import Tokenizer

SEED = 20
WARM_UP = 8
"""Documents that load the models before a measurement."""

CHANGED, DELETED = 0.01, 0.1
"""Shares of the documents."""

ADDED = "\n\nThis document was checked and amended on day {number} of the year."
"""What a changed document has in addition."""


@dataclass(frozen=True)
class Material:
    """Folders of text files, each with a file FOLDER.json of the spans of all chunks."""

    whole: Path
    warm: Path
    changed: Path
    chunks: Mapping[str, int]
    """The number of chunks of each document of `whole`."""
    deleted: tuple[str, ...]
    queries: Mapping[str, str]
    """All queries whose relevant documents are all in `whole`, in random order."""
    qrels: Mapping[str, Mapping[str, int]]
    """Query id to document name to grade."""
    megabytes: float

    def searches(self, number: int, count: int) -> list[str]:
        """Return the ids of the queries of one measurement, from where the last one ended."""
        start = number * count
        return list(itertools.islice(itertools.cycle(self.queries), start, start + count))


@dataclass(frozen=True)
class _Chosen:
    name: str
    set_name: str
    document_id: str
    text: str


def prepare(sets: Sequence[Path], count: int, scratch: Path, models: Path) -> Material:
    """Write `count` documents, about as many of each set, and those with judgements first.

    Raises EvaluationError if the sets have fewer documents.
    """
    chooser = random.Random(SEED)  # noqa: S311 - no secret
    judged = {folder.name: beir.read(folder) for folder in sets}
    drawn = {name: _drawn(each, chooser) for name, each in judged.items()}
    chosen = list(itertools.islice(_in_turns(drawn), count + WARM_UP))
    if len(chosen) < count + WARM_UP:
        raise EvaluationError(f"these sets have {len(chosen)} documents, not {count + WARM_UP}")
    warm, whole = chosen[count:], chosen[:count]
    chooser.shuffle(whole)
    changed = [
        _Chosen(each.name, each.set_name, each.document_id, each.text + ADDED.format(number=n))
        for n, each in enumerate(whole[: max(1, round(count * CHANGED))], 1)
    ]
    deleted = [each.name for each in whole[-max(1, round(count * DELETED)) :]]
    write = _Writer(Tokenizer(models))
    chunks = write(scratch / "whole", whole)
    write(scratch / "warm", warm)
    write(scratch / "changed", changed)
    queries, qrels = _questions(judged, whole, chooser)
    return Material(
        *(scratch / "whole", scratch / "warm", scratch / "changed", chunks, tuple(deleted)),
        *(queries, qrels, sum(len(each.text.encode()) for each in whole) / 1e6),
    )


def _drawn(judged: beir.JudgedSet, chooser: random.Random) -> Iterator[_Chosen]:
    """Yield the documents of a set: those of each query together, then the others."""
    # Readers of text files read every end of a line as one character.
    corpus = {each.document_id: "\n".join(each.content.splitlines()) for each in judged.corpus()}
    queries, others = list(judged.qrels), list(corpus)
    chooser.shuffle(queries)
    chooser.shuffle(others)
    relevant = [document for query in queries for document in _relevant(judged.qrels[query])]
    for number, document_id in enumerate(dict.fromkeys([*relevant, *others])):
        if document_id in corpus:
            name = f"{judged.name}-{number:05}.txt"
            yield _Chosen(name, judged.name, document_id, corpus[document_id])


def _in_turns(drawn: Mapping[str, Iterator[_Chosen]]) -> Iterator[_Chosen]:
    for row in itertools.zip_longest(*drawn.values()):
        yield from (each for each in row if each is not None)


def _questions(
    judged: Mapping[str, beir.JudgedSet], whole: Sequence[_Chosen], chooser: random.Random
) -> tuple[dict[str, str], dict[str, dict[str, int]]]:
    names = {(each.set_name, each.document_id): each.name for each in whole}
    qrels, texts = {}, {}
    for set_name, each in judged.items():
        for query, grades in each.qrels.items():
            relevant = _relevant(grades)
            if all((set_name, each_id) in names for each_id in relevant):
                query_id = f"{set_name} {query}"
                qrels[query_id] = {
                    names[set_name, document]: grades[document] for document in relevant
                }
                texts[query_id] = each.queries[query]
    order = list(texts)
    chooser.shuffle(order)
    return {query: texts[query] for query in order}, qrels


def _relevant(grades: Mapping[str, int]) -> list[str]:
    return [document for document, grade in grades.items() if grade > 0]


class _Writer:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def __call__(self, folder: Path, documents: Sequence[_Chosen]) -> dict[str, int]:
        """Write the files and their spans; the number of chunks of each."""
        folder.mkdir(parents=True)
        spans = {each.name: self._spans(each.text) for each in documents}
        for each in documents:
            (folder / each.name).write_text(each.text, encoding="utf-8")
        folder.with_name(f"{folder.name}.json").write_text(json.dumps(spans))
        return {name: len(cuts) for name, cuts in spans.items()}

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Cut a text as Callslip cuts it."""
        sections = sectionize(ExtractedText(text, "text/plain"))
        chunks = chunk(text, sections, self._tokenizer, ChunkingSettings(), "")
        return [(each.start, each.end) for each in chunks]
