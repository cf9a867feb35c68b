"""Answers without a language model: right, wrong and refused, and how good the confidence is.

`python -m benchmarks.quality.answers SET… > table.md`

A set is a folder in BEIR form, or a folder with `questions.jsonl` (`benchmarks.quality.questions`)
and documents. From a set in BEIR form half of the documents that answer a question are removed, so
that about half of the questions have no answer. Every question goes to `/v1/answer`. The tables
count the outcomes and measure the confidence (`benchmarks.quality.selective`).

A refused question counts in the curve with the answer that it would have had. The server of
`--data` has the threshold 0 and so answers every question, as any threshold would; the command
applies the threshold of the settings. With another server, the nearest passage stands for the
answer that was refused.
"""

import argparse
import csv
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.quality import questions
from benchmarks.quality.answer_tables import COUNTS, Measured, Outcome, counts, scored, tables
from benchmarks.quality.judged_collections import (
    add_arguments,
    files,
    judged_set,
    named,
    parse,
    server,
)
from benchmarks.quality.selective import curve
from callslip import __version__
from callslip.config import load
from callslip.config.keys import variable
from callslip.errors import CallslipError, JudgedSetError
from callslip.evals import beir
from callslip.evals.client import JsonClient
from callslip.evals.run import show_end
from callslip.evals.tables import table, tell

SEED = 7

THREADS = 2
"""Questions at the same time: as many as one worker answers (`agent.threads`)."""

BY_CONFIDENCE = ("not-covered", "not-apart")
"""The reasons of a refusal that a lower threshold lifts."""

POINTS = ("set", "threshold", "coverage", "risk")

Answer = Mapping[str, Any]
"""The response of `/v1/answer`."""


@dataclass(frozen=True)
class Question:
    """A question of any set.

    `judge` returns whether an answer's cited passages, and its quoted sentences, have the right
    answer; the second value is None if the set cannot tell. In a refusal the nearest passage stands
    for the cited ones.
    """

    text: str
    as_of: str | None
    answerable: bool
    judge: Callable[[Answer], tuple[bool, bool | None]]


def halved(judged: beir.JudgedSet) -> tuple[beir.JudgedSet, set[str]]:
    """Return the set without half of the documents that answer a query, and the answerable queries.

    The removed documents are drawn with a fixed seed. A query that loses only some of its
    answering documents is left out of the set.
    """
    answers = {
        query: {document for document, grade in grades.items() if grade > 0}
        for query, grades in judged.qrels.items()
    }
    documents = sorted(set().union(*answers.values()))
    random.Random(SEED).shuffle(documents)  # noqa: S311
    gone = set(documents[::2])
    clear = {query for query, right in answers.items() if right <= gone or not right & gone}
    return judged.without(gone).only(clear), {q for q in clear if not answers[q] & gone}


def of_judged_set(
    client: JsonClient, judged: beir.JudgedSet, answerable: set[str], ids: Mapping[str, str]
) -> list[Question]:
    """Return the questions of a set in BEIR form; `ids` maps the server's ids to the set's.

    An answer is right if a cited passage contains the words of the expected answer, or, in a set
    without these words, if it belongs to a relevant document.
    """
    spans = beir.read_spans(judged.folder)

    def judge_of(query: str) -> Callable[[Answer], tuple[bool, bool | None]]:
        def by_words(answer: Answer) -> tuple[bool, bool | None]:
            cited, words = _cited(answer), spans[query]
            passages = (passage(client, citation) for citation in cited)
            return (
                any(word in text for text in passages for word in words),
                any(word in citation["quote"] for citation in cited for word in words),
            )

        def by_document(answer: Answer) -> tuple[bool, bool | None]:
            documents = (ids.get(citation["document_id"], "") for citation in _cited(answer))
            return any(judged.qrels[query].get(each, 0) > 0 for each in documents), None

        return by_words if spans.get(query) else by_document

    return [
        Question(text, judged.as_of.get(query), query in answerable, judge_of(query))
        for query, text in judged.queries.items()
    ]


def of_file(read: Sequence[questions.Question]) -> list[Question]:
    """Return the questions of a file; an answer's sentences are judged, without marks and dates."""

    def judge_of(question: questions.Question) -> Callable[[Answer], tuple[bool, bool | None]]:
        def judge(answer: Answer) -> tuple[bool, bool | None]:
            sentences = " ".join(sentence["text"] for sentence in answer["sentences"])
            texts = [sentences] if answer["answered"] else map(_quote, _cited(answer))
            right = any(map(question.accepts, texts))
            return right, right

        return judge

    return [Question(q.question, q.as_of, q.answerable, judge_of(q)) for q in read]


def _cited(answer: Answer) -> list[dict[str, Any]]:
    cited: list[dict[str, Any]] = answer["citations"] or answer["nearest"][:1]
    return cited


def _quote(citation: Mapping[str, Any]) -> str:
    return str(citation["quote"])


def passage(client: JsonClient, citation: Mapping[str, Any]) -> str:
    """Return the text of the cited passage."""
    span = citation["passage"]
    path = f"/v1/documents/{citation['document_id']}/text"
    return str(client.get(path, start=span["start"], end=span["end"])["text"])


def ask_all(
    client: JsonClient, collection: str, asking: Sequence[Question], threshold: float = 0.0
) -> list[Outcome]:
    """Ask every question; an answer with a confidence below `threshold` counts as refused.

    Raises the server's errors.
    """

    def ask(question: Question) -> Outcome:
        body = {"collection": collection, "question": question.text, "model": False}
        body |= {"as_of": question.as_of} if question.as_of else {}
        answer = client.post("/v1/answer", body)
        right, quoted = question.judge(answer)
        verdict = answer["verdict"]
        return Outcome(
            question=question.text,
            answerable=question.answerable,
            answered=answer["answered"] and verdict["confidence"] >= threshold,
            confidence=verdict["confidence"],
            at_no_threshold=not answer["answered"] and verdict["reason"] not in BY_CONFIDENCE,
            right=question.answerable and right,
            quoted=quoted and question.answerable,
        )

    outcomes = []
    with ThreadPoolExecutor(THREADS) as pool:
        try:
            for number, outcome in enumerate(pool.map(ask, asking), 1):
                outcomes.append(outcome)
                if number % 50 == 0:
                    tell(f"{collection}: {number:,} of {len(asking):,} questions")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if a set cannot be measured."""
    options = _arguments(arguments)
    print(f"Callslip {__version__}, {datetime.now(UTC):%Y-%m-%d}.\n")
    print(table(COUNTS, []), flush=True)
    measured: list[Measured] = []
    notes: list[str] = []
    failed = False
    threshold = load().settings.agent.confidence_threshold if options.data else 0.0
    with server(options, {variable("agent.confidence_threshold"): "0"}) as client:
        for number, folder in enumerate(options.sets):
            name, remarks = folder.resolve().name, list[str]()
            try:
                existing = named(options, number)
                with _questions(client, folder, existing, options, remarks) as (collection, asking):
                    outcomes = ask_all(client, collection, asking, threshold)
            except CallslipError as error:
                failed = True
                remarks.append(f"not measured: {error.detail}")
            else:
                measured.append((name, outcomes))
                print(f"| {' | '.join(counts(name, outcomes))} |", flush=True)
            show_end()
            notes += (f"- {name}: {remark.removesuffix('.')}." for remark in remarks)
    print("\n" + "\n\n".join(tables(measured)))
    if notes:
        print("\n" + "\n".join(notes))
    if options.curves:
        _write_curves(options.curves, measured)
    if options.misses:
        for name, each in measured:
            for outcome in each:
                if outcome.name not in ("right", "rightly refused"):
                    print(f"{name}: {outcome.name}: {outcome.question}", file=sys.stderr)
    return int(failed)


def _write_curves(file: Path, measured: Sequence[Measured]) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(POINTS)
        for name, outcomes in measured:
            writer.writerows((name, *point) for point in curve(*scored(outcomes)))


@contextmanager
def _questions(
    client: JsonClient,
    folder: Path,
    existing: str | None,
    options: argparse.Namespace,
    notes: list[str],
) -> Iterator[tuple[str, list[Question]]]:
    """Yield the collection of a set and its questions, at most `--queries` of them."""
    if (folder / questions.FILE).is_file():
        asking = of_file(_at_most(questions.read(folder / questions.FILE), options.queries))
        with files(client, questions.folders(folder), options, existing, notes) as name:
            _without_memory(client, name, existing)
            yield name, asking
        return
    judged, answerable = halved(beir.read(folder))
    if not judged.queries:
        raise JudgedSetError(f"{folder} has no question left without half of its documents")
    notes += judged.warnings
    if options.queries is not None:
        judged = judged.at_most(options.queries)
    with judged_set(client, judged, options, existing, notes) as (name, ids):
        _without_memory(client, name, existing)
        yield name, of_judged_set(client, judged, answerable, ids)


def _without_memory(client: JsonClient, name: str, existing: str | None) -> None:
    """The memory of one question must not help the next; an existing collection stays as it is."""
    if existing is None:
        client.put(f"/v1/collections/{name}/options", {"ranking": {"memory_weight": 0}})


def _at_most(read: Sequence[questions.Question], count: int | None) -> Sequence[questions.Question]:
    if count is None or count >= len(read):
        return read
    return [read[n * len(read) // count] for n in range(count)]


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality.answers",
        description="Ask questions of which some cannot be answered, without a language model:"
        " Markdown on standard output.",
        epilog="Example:  python -m benchmarks.quality.answers sets/en_xquad sets/handbooks"
        " --data work",
    )
    add_arguments(parser, "folder in BEIR form, or with questions.jsonl and folders of documents")
    parser.add_argument(
        "--curves", type=Path, metavar="FILE", help="write all points of the curves, as CSV"
    )
    parser.add_argument(
        "--misses", action="store_true", help="name what is not right, on standard error"
    )
    return parse(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
