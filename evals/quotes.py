"""Does an answer say what it must? `python -m evals.quotes examples/questions.jsonl > table.md`.

Each line of the file has a `question` and in `says` what the answer may say, one of which it must;
an empty list where nothing answers; `as_of` may name the day as of which it is asked. They are
asked without a language model.
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
from callslip.errors import CallslipError, JudgedSetError
from config import load
from evals.client import Desk
from evals.tables import table, tell
from workers.up import running_url

Outcome = Literal["right", "wrong", "refused", "rightly refused", "wrongly answered"]

HEAD = ("questions", "answered rightly", "wrongly", "refused", "unanswerable", "answered")


class Question(BaseModel):
    """A question and what its answer may say, without regard to white space and case."""

    model_config = ConfigDict(extra="forbid", strict=True)

    question: str
    says: list[str]
    as_of: str | None = None
    """The day as of which it is asked; null: as the question says, else today."""

    def outcome(self, answered: bool, text: str) -> Outcome:
        """What an answer is worth."""
        if not self.says:
            return "wrongly answered" if answered else "rightly refused"
        if not answered:
            return "refused"
        return "right" if any(_bare(said) in _bare(text) for said in self.says) else "wrong"


def read(file: Path) -> list[Question]:
    """The questions of a file; JudgedSetError names a line that is none."""
    found = []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise JudgedSetError(f"{file} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            found.append(Question.model_validate(json.loads(line)))
        except ValidationError as error:
            fault = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, fault["loc"]))
            raise JudgedSetError(f"{file}:{number}: {where}: {fault['msg']}") from error
        except ValueError as error:
            raise JudgedSetError(f"{file}:{number}: no JSON: {error}") from error
    if not found:
        raise JudgedSetError(f"{file} has no questions")
    return found


def ask(desk: Desk, collection: str, questions: Sequence[Question]) -> list[Outcome]:
    """Ask every question; raises what the desk answers."""

    def asked(question: Question) -> Outcome:
        body = {"collection": collection, "question": question.question, "model": False}
        body |= {"as_of": question.as_of} if question.as_of else {}
        answer = desk.post("/v1/answer", body)
        return question.outcome(answer["answered"], answer["text"])

    with ThreadPoolExecutor(desk.connections) as pool:
        return list(pool.map(asked, questions))


def row(outcomes: Sequence[Outcome]) -> list[str]:
    """A line of the table."""
    counts = Counter(outcomes)
    answerable = counts["right"] + counts["wrong"] + counts["refused"]
    shown = (answerable, counts["right"], counts["wrong"], counts["refused"])
    return [str(n) for n in (*shown, len(outcomes) - answerable, counts["wrongly answered"])]


def _bare(text: str) -> str:
    return "".join(text.split()).casefold()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where it could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m evals.quotes",
        description="Ask questions whose answers are known: Markdown on standard output, what is"
        " not as it should be on standard error.",
        epilog="Example:  python -m evals.quotes examples/questions.jsonl",
    )
    parser.add_argument("file", type=Path, help='lines {"question": …, "says": [… or …]}')
    parser.add_argument("-c", "--collection", default="main", help="default: main")
    parser.add_argument("--url", help="where the desk runs; default: the one of the settings")
    given = parser.parse_args(arguments)
    settings = load().settings
    url = given.url or settings.api.url or running_url(settings) or settings.api_url
    try:
        questions = read(given.file)
        with Desk(url, key=settings.api.key) as desk:
            outcomes = ask(desk, given.collection, questions)
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
