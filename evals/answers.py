"""Does the agent know what it does not know? `python -m evals.answers SET… > table.md`.

Of each judged set every second document that answers something is taken out of the corpus, so that
about half of the questions cannot be answered. The rest goes into a scratch collection of the desk,
every question goes to `/v1/answer`, and it is counted what was answered, and rightly.
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
from callslip.errors import CallslipError
from config import load
from evals import beir, judge
from evals.client import Desk
from evals.run import show, show_end
from evals.tables import table, tell
from workers.up import running_url

SEED = 7

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)

HEAD = (
    *("set", "questions", "answerable", "answered rightly", "… in the quoted sentence"),
    *("answered with another passage", "unanswerable, answered", "other ways tried"),
)
CURVE = ("set", "threshold", "answered rightly", "unanswerable, answered")


@dataclass(frozen=True)
class Asked:
    """One question and its answer. `first` is the confidence before other ways were tried."""

    answerable: bool
    answered: bool
    right: bool
    quoted: bool
    first: float
    first_right: bool
    attempts: int


def halved(judged: beir.JudgedSet) -> tuple[beir.JudgedSet, set[str]]:
    """The set without every second document that answers something, and what is answerable yet.

    Which documents, is drawn with a fixed seed. Queries of which only some answers are left are
    left out.
    """
    answers = {
        query: {document for document, grade in grades.items() if grade > 0}
        for query, grades in judged.qrels.items()
    }
    documents = sorted(set().union(*answers.values()))
    random.Random(SEED).shuffle(documents)  # noqa: S311
    gone = set(documents[::2])
    clear = {query for query, held in answers.items() if held <= gone or not held & gone}
    return judged.without(gone).only(clear), {q for q in clear if not answers[q] & gone}


def ask_all(
    desk: Desk,
    collection: str,
    judged: beir.JudgedSet,
    answerable: set[str],
    ids: Mapping[str, str],
    spans: Mapping[str, list[str]],
) -> list[Asked]:
    """Ask every question; what is right is a cited passage with the answer's words.

    Of a set without such words, a cited document that answers by the judgements.
    """

    def ask(query: str) -> Asked:
        body = {"collection": collection, "question": judged.queries[query], "model": False}
        if query in judged.as_of:
            body["as_of"] = judged.as_of[query]
        answer = desk.post("/v1/answer", body)
        grades, words = judged.qrels[query], spans.get(query)
        right = quoted = first_right = False
        for citation in answer["citations"] or answer["nearest"][:1]:
            document = ids[citation["document_id"]]
            if words:
                whole = passage(desk, citation)
                held = any(word in whole for word in words)
                said = any(word in citation["quote"] for word in words)
            else:
                held = said = grades.get(document, 0) > 0
            right, quoted = right or held, quoted or said
        first_right = right
        possible = query in answerable
        return Asked(
            answerable=possible,
            answered=answer["answered"],
            right=possible and answer["answered"] and right,
            quoted=possible and answer["answered"] and quoted,
            first=answer["attempts"][0]["verdict"]["confidence"],
            first_right=possible and first_right,
            attempts=len(answer["attempts"]),
        )

    with ThreadPoolExecutor(2) as pool:
        found = []
        for number, asked in enumerate(pool.map(ask, judged.queries), 1):
            found.append(asked)
            if number % 50 == 0:
                tell(f"{judged.name}: {number:,} of {len(judged.queries):,} questions")
    return found


def passage(desk: Desk, citation: Mapping[str, Any]) -> str:
    """The text of the passage that is cited."""
    span = citation["passage"]
    path = f"/v1/documents/{citation['document_id']}/text"
    return str(desk.get(path, start=span["start"], end=span["end"])["text"])


def row(name: str, asked: Sequence[Asked]) -> tuple[str, ...]:
    """One line of the table."""
    yes, no = [a for a in asked if a.answerable], [a for a in asked if not a.answerable]
    other = [a for a in yes if a.answered and not a.right]
    return (
        *(name, f"{len(asked):,}", f"{len(yes):,}"),
        *(_share(a.right for a in yes), _share(a.quoted for a in yes)),
        *(f"{len(other) / len(yes):.3f}", _share(a.answered for a in no)),
        f"{sum(a.attempts - 1 for a in asked) / len(asked):.2f}",
    )


def curve(name: str, asked: Sequence[Asked]) -> list[tuple[str, ...]]:
    """The two shares by threshold, of the first attempt alone."""
    yes, no = [a for a in asked if a.answerable], [a for a in asked if not a.answerable]
    return [
        (
            *(name, f"{threshold:g}"),
            _share(a.first >= threshold and a.first_right for a in yes),
            _share(a.first >= threshold for a in no),
        )
        for threshold in THRESHOLDS
    ]


def _share(held: Iterable[bool]) -> str:
    values = list(held)
    return f"{sum(values) / len(values):.3f}" if values else "–"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a set could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m evals.answers",
        description="Ask the agent questions of which half cannot be answered: Markdown on"
        " standard output.",
        epilog="Example:  python -m evals.answers sets/en_xquad",
    )
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET", help="folder in BEIR form")
    parser.add_argument("--url", help="where the desk runs; default: the one of the settings")
    parser.add_argument("--queries", type=int, metavar="N", help="at most so many of each set")
    asked = parser.parse_args(arguments)
    settings = load().settings
    url = asked.url or settings.api.url or running_url(settings) or settings.api_url
    print(f"Callslip {__version__}, {datetime.now(UTC):%Y-%m-%d}.\n")
    rows, curves, failed = [], [], False
    with Desk(url, key=settings.api.key) as desk:
        for folder in asked.sets:
            try:
                found = _measure(desk, folder, asked.queries)
            except CallslipError as error:
                failed = True
                tell(f"{folder.name} is not measured: {error.detail}")
                continue
            name = folder.resolve().name
            rows.append(row(name, found))
            curves += curve(name, found)
    print(table(HEAD, rows) + "\n\n" + table(CURVE, curves))
    return int(failed)


def _measure(desk: Desk, folder: Path, most: int | None) -> list[Asked]:
    judged, answerable = halved(beir.read(folder))
    if most is not None:
        judged = judged.at_most(most)
    name, warnings = judge.scratch_name(judged.name), list[str]()
    tell(f"{judged.name}: {judged.documents:,} documents go into {name}")
    with judge.ingested(desk, name, judged, warnings, None, show) as ids:
        show_end()
        # What one question taught must not help the next.
        desk.put(f"/v1/collections/{name}/options", {"ranking": {"memory_weight": 0}})
        return ask_all(desk, name, judged, answerable, ids, beir.read_spans(folder))


if __name__ == "__main__":
    sys.exit(main())
