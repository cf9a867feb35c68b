"""Questions whose answers are known by their words: `questions.jsonl`, with documents beside it.

Each line has a `question` (or `text`), and either a list `says` of phrases, one of which must be in
the answer, or a regular expression `pattern` that must match the answer. The list is empty, or the
pattern null, if the documents have no answer. `as_of` may name the day that the question refers to.
The documents are the files in the folders beside `questions.jsonl`.
"""

import json
import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from callslip.errors import JudgedSetError

FILE = "questions.jsonl"


def _checked(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from error
    return pattern


class Question(BaseModel):
    """A question and the accepted phrases of its answer; white space and case do not count.

    In `pattern` a space stands for any white space. `id` and `file` are for readers of the file.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    question: str = Field(validation_alias=AliasChoices("question", "text"))
    says: list[str] = []
    pattern: Annotated[str, AfterValidator(_checked)] | None = None
    as_of: str | None = None
    """The request's `as_of`; if null, the day in the question counts, or else today."""
    id: str = Field(default="", alias="_id")
    file: str | None = None

    @model_validator(mode="after")
    def _has_one_answer(self) -> Self:
        if len(self.model_fields_set & {"says", "pattern"}) != 1:
            raise ValueError("either says or pattern is needed")
        return self

    @property
    def answerable(self) -> bool:
        """Whether the documents have an answer."""
        return bool(self.says or self.pattern)

    def accepts(self, text: str) -> bool:
        """Whether a text has the answer; no text has it if the question is not answerable."""
        if self.pattern:
            return bool(re.search(self.pattern, " ".join(text.split()), re.IGNORECASE))
        return any(_plain(phrase) in _plain(text) for phrase in self.says)


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
            where = "".join(f"{part}: " for part in fault["loc"])
            raise JudgedSetError(f"{file}:{number}: {where}{fault['msg']}") from error
        except ValueError as error:
            raise JudgedSetError(f"{file}:{number}: no JSON: {error}") from error
    if not questions:
        raise JudgedSetError(f"{file} has no questions")
    return questions


def folders(folder: Path) -> list[Path]:
    """Return the folders beside the questions, in which the documents are.

    Raises JudgedSetError if there is none.
    """
    inside = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    if not inside:
        raise JudgedSetError(f"{folder} has no folder with documents")
    return inside


def _plain(text: str) -> str:
    return "".join(text.split()).casefold()
