"""Counts correct answers: `python -m benchmarks.quotes examples/questions.jsonl > table.md`.

Each line of the file has a `question` and a list `says` of phrases, one of which must be in the
answer; the list is empty if the documents have no answer. `as_of` may name the day that the
question refers to. The questions are answered without a language model.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from callslip import __version__
from callslip.config import load
from callslip.errors import CallslipError, JudgedSetError
from callslip.evals.client import JsonClient
from callslip.evals.tables import table, tell
from callslip.workers.up import running_url

Outcome = Literal["right", "wrong", "refused", "rightly refused", "wrongly answered"]

HEAD = ("questions", "answered rightly", "wrongly", "refused", "unanswerable", "answered")


class Question(BaseModel):
    """A question and the accepted phrases of its answer; white space and case do not count."""

    model_config = ConfigDict(extra="forbid", strict=True)

    question: str
    says: list[str]
    as_of: str | None = None
    """The request's `as_of`; if null, the day in the question counts, or else today."""

    def outcome(self, answered: bool, text: str) -> Outcome:
        """Judge an answer."""
        if not self.says:
            return "wrongly answered" if answered else "rightly refused"
        if not answered:
            return "refused"
        return "right" if any(_plain(phrase) in _plain(text) for phrase in self.says) else "wrong"


def read(file: Path) -> list[Question]:
    """Read the questions of a file; raise JudgedSetError, with its number, for an invalid line."""
    questions = []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise JudgedSetError(f"{file} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            questions.append(Question.model_validate(json.loads(line)))
        except ValidationError as error:
            fault = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, fault["loc"]))
            raise JudgedSetError(f"{file}:{number}: {where}: {fault['msg']}") from error
        except ValueError as error:
            raise JudgedSetError(f"{file}:{number}: no JSON: {error}") from error
    if not questions:
        raise JudgedSetError(f"{file} has no questions")
    return questions


def ask(client: JsonClient, collection: str, questions: Sequence[Question]) -> list[Outcome]:
    """Ask every question; raise the server's errors."""

    def ask_one(question: Question) -> Outcome:
        body = {"collection": collection, "question": question.question, "model": False}
        body |= {"as_of": question.as_of} if question.as_of else {}
        answer = client.post("/v1/answer", body)
        return question.outcome(answer["answered"], answer["text"])

    with ThreadPoolExecutor(client.connections) as pool:
        return list(pool.map(ask_one, questions))


def row(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a row of the table."""
    counts = Counter(outcomes)
    answerable = counts["right"] + counts["wrong"] + counts["refused"]
    shown = (answerable, counts["right"], counts["wrong"], counts["refused"])
    return [str(n) for n in (*shown, len(outcomes) - answerable, counts["wrongly answered"])]


def _plain(text: str) -> str:
    return "".join(text.split()).casefold()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if the questions cannot be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quotes",
        description="Ask questions whose answers are known: Markdown on standard output, what is"
        " not as it should be on standard error.",
        epilog="Example:  python -m benchmarks.quotes examples/questions.jsonl",
    )
    parser.add_argument("file", type=Path, help='lines {"question": …, "says": [… or …]}')
    parser.add_argument("-c", "--collection", default="main", help="default: main")
    parser.add_argument("--url", help="where the server runs; default: the one of the settings")
    options = parser.parse_args(arguments)
    settings = load().settings
    url = options.url or settings.api.url or running_url(settings) or settings.api_url
    try:
        questions = read(options.file)
        with JsonClient(url, key=settings.api.key) as client:
            outcomes = ask(client, options.collection, questions)
    except CallslipError as error:
        tell(f"not measured: {error.detail} {error.advice}")
        return 1
    for question, outcome in zip(questions, outcomes, strict=True):
        if outcome not in ("right", "rightly refused"):
            print(f"{outcome}: {question.question}", file=sys.stderr)
    print(f"Callslip {__version__}.\n\n" + table(HEAD, [row(outcomes)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
