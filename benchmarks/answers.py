"""How well the agent refuses questions without an answer.

`python -m benchmarks.answers SET… > table.md`

From each judged set, half of the documents that answer a question are removed, so that about half
of the questions have no answer. The other documents go into a scratch collection of the server,
every question goes to `/v1/answer`, and the table counts the answers and the correct answers.
"""

import argparse
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from callslip import __version__
from callslip.config import load
from callslip.errors import CallslipError
from callslip.evals import beir, judge
from callslip.evals.client import JsonClient
from callslip.evals.run import show, show_end
from callslip.evals.tables import table, tell
from callslip.workers.up import running_url

SEED = 7

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)

HEAD = (
    *("set", "questions", "answerable", "answered rightly", "… in the quoted sentence"),
    *("answered with another passage", "unanswerable, answered", "other ways tried"),
)
CURVE = ("set", "threshold", "answered rightly", "unanswerable, answered")


@dataclass(frozen=True)
class Outcome:
    """One question and its answer.

    `right` and `quoted` say whether a cited passage and a quoted sentence contain the answer.
    `first` is the confidence of the first attempt.
    """

    answerable: bool
    answered: bool
    right: bool
    quoted: bool
    first: float
    first_right: bool
    attempts: int


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


def ask_all(
    client: JsonClient,
    collection: str,
    judged: beir.JudgedSet,
    answerable: set[str],
    ids: Mapping[str, str],
    spans: Mapping[str, list[str]],
) -> list[Outcome]:
    """Ask every question. An answer is right if a cited passage contains the answer's words.

    In a set without the answer's words, an answer is right if it cites a relevant document.
    """

    def ask(query: str) -> Outcome:
        body = {"collection": collection, "question": judged.queries[query], "model": False}
        if query in judged.as_of:
            body["as_of"] = judged.as_of[query]
        answer = client.post("/v1/answer", body)
        grades, words = judged.qrels[query], spans.get(query)
        right = quoted = first_right = False
        for citation in answer["citations"] or answer["nearest"][:1]:
            document = ids[citation["document_id"]]
            if words:
                whole = passage(client, citation)
                in_passage = any(word in whole for word in words)
                in_quote = any(word in citation["quote"] for word in words)
            else:
                in_passage = in_quote = grades.get(document, 0) > 0
            right, quoted = right or in_passage, quoted or in_quote
        first_right = right
        possible = query in answerable
        return Outcome(
            answerable=possible,
            answered=answer["answered"],
            right=possible and answer["answered"] and right,
            quoted=possible and answer["answered"] and quoted,
            first=answer["attempts"][0]["verdict"]["confidence"],
            first_right=possible and first_right,
            attempts=len(answer["attempts"]),
        )

    with ThreadPoolExecutor(2) as pool:
        outcomes = []
        for number, outcome in enumerate(pool.map(ask, judged.queries), 1):
            outcomes.append(outcome)
            if number % 50 == 0:
                tell(f"{judged.name}: {number:,} of {len(judged.queries):,} questions")
    return outcomes


def passage(client: JsonClient, citation: Mapping[str, Any]) -> str:
    """Return the text of the cited passage."""
    span = citation["passage"]
    path = f"/v1/documents/{citation['document_id']}/text"
    return str(client.get(path, start=span["start"], end=span["end"])["text"])


def row(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return a row of the table."""
    yes, no = [a for a in outcomes if a.answerable], [a for a in outcomes if not a.answerable]
    other = [a for a in yes if a.answered and not a.right]
    return (
        *(name, f"{len(outcomes):,}", f"{len(yes):,}"),
        *(_share(a.right for a in yes), _share(a.quoted for a in yes)),
        *(f"{len(other) / len(yes):.3f}", _share(a.answered for a in no)),
        f"{sum(a.attempts - 1 for a in outcomes) / len(outcomes):.2f}",
    )


def curve(name: str, outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """Return the shares of both kinds of questions for each threshold.

    The threshold applies to the confidence of the first attempt.
    """
    yes, no = [a for a in outcomes if a.answerable], [a for a in outcomes if not a.answerable]
    return [
        (
            *(name, f"{threshold:g}"),
            _share(a.first >= threshold and a.first_right for a in yes),
            _share(a.first >= threshold for a in no),
        )
        for threshold in THRESHOLDS
    ]


def _share(flags: Iterable[bool]) -> str:
    values = list(flags)
    return f"{sum(values) / len(values):.3f}" if values else "–"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if a set cannot be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.answers",
        description="Ask the agent questions of which half cannot be answered: Markdown on"
        " standard output.",
        epilog="Example:  python -m benchmarks.answers sets/en_xquad",
    )
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET", help="folder in BEIR form")
    parser.add_argument("--url", help="where the server runs; default: the one of the settings")
    parser.add_argument("--queries", type=int, metavar="N", help="at most so many of each set")
    options = parser.parse_args(arguments)
    settings = load().settings
    url = options.url or settings.api.url or running_url(settings) or settings.api_url
    print(f"Callslip {__version__}, {datetime.now(UTC):%Y-%m-%d}.\n")
    rows, curves, failed = [], [], False
    with JsonClient(url, key=settings.api.key) as client:
        for folder in options.sets:
            try:
                outcomes = _measure(client, folder, options.queries)
            except CallslipError as error:
                failed = True
                tell(f"{folder.name} is not measured: {error.detail}")
                continue
            name = folder.resolve().name
            rows.append(row(name, outcomes))
            curves += curve(name, outcomes)
    print(table(HEAD, rows) + "\n\n" + table(CURVE, curves))
    return int(failed)


def _measure(client: JsonClient, folder: Path, most: int | None) -> list[Outcome]:
    judged, answerable = halved(beir.read(folder))
    if most is not None:
        judged = judged.at_most(most)
    name, warnings = judge.scratch_name(judged.name), list[str]()
    tell(f"{judged.name}: {judged.documents:,} documents go into {name}")
    with judge.ingested(client, name, judged, warnings, None, show) as ids:
        show_end()
        # The memory of one question must not help the next.
        client.put(f"/v1/collections/{name}/options", {"ranking": {"memory_weight": 0}})
        return ask_all(client, name, judged, answerable, ids, beir.read_spans(folder))


if __name__ == "__main__":
    sys.exit(main())
