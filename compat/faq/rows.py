"""Rows of an FAQ, and what is embedded of a row by each strategy."""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from config.faq import Strategy
from models.normal import normalized
from models.tokens import is_blank
from retrieval.messages import Text
from stores.checks import MAX_TEXT_BYTES
from stores.filters import is_unicode
from stores.records import Properties

FIELDS = ("id", "question", "answer")

LONGEST_ID, LARGEST_ID = 256, 2**53


def _told(text: str) -> str:
    if not text.strip() or is_blank(text):
        raise ValueError("is empty")
    if len(text.encode()) > MAX_TEXT_BYTES:
        raise ValueError(f"is longer than {MAX_TEXT_BYTES} bytes")
    return text


def _row_id(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("is neither a text nor a whole number")
    if isinstance(value, int) and abs(value) > LARGEST_ID:
        raise ValueError("is a number that cannot be kept exactly")
    if isinstance(value, str):
        if not is_unicode(value):
            raise ValueError("is not valid Unicode")
        if len(_told(value)) > LONGEST_ID:
            raise ValueError(f"has {len(value)} characters, at most {LONGEST_ID} are kept")
    return value


Told = Annotated[Text, AfterValidator(_told)]
"""A text that says something and that every store can keep."""

RowId = Annotated[int | str, BeforeValidator(_row_id)]


class Row(BaseModel):
    """A question with its answer.

    One without an id has one that is made of its question, so that it is the same row next time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: RowId = Field(description="a text or a whole number; left out: made of the question")
    question: Told
    answer: Told

    @model_validator(mode="before")
    @classmethod
    def _identified(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("id") is None:
            question = given.get("question")
            if isinstance(question, str):
                return {**given, "id": made_id(question)}
        return given

    @property
    def metadata(self) -> Properties:
        """What a hit says of the row."""
        return {"question": self.question, "answer": self.answer, "id": self.id}

    def text(self, strategy: Strategy) -> str:
        """What is embedded."""
        match strategy:
            case "question":
                return self.question
            case "answer":
                return self.answer
            case "question_answer":
                return f"{self.question}\n\n{self.answer}"


def made_id(question: str) -> str:
    """The id of a row that has none."""
    text = normalized("NFC", question.encode("utf-8", "replace").decode()).strip()
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def entry_id(row_id: object) -> str:
    """The id of a row in every collection: `faq_7`."""
    return f"faq_{row_id}"


def twice(ids: Mapping[int, int | str]) -> dict[int, int]:
    """Places of rows whose id stands before, to the place where it stands first."""
    first: dict[str, int] = {}
    again: dict[int, int] = {}
    for at, row_id in ids.items():
        before = first.setdefault(entry_id(row_id), at)
        if before != at:
            again[at] = before
    return again
