"""Rows of an FAQ, and the text of a row that each strategy embeds."""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from callslip.config.sections.faq import Strategy
from callslip.models.e5.tokens import is_blank
from callslip.models.text.normalization import normalized
from callslip.retrieval.messages import Text
from callslip.stores.properties.checks import MAX_TEXT_BYTES
from callslip.stores.properties.filters import is_unicode
from callslip.stores.records import Properties

FIELDS = ("id", "question", "answer")

LONGEST_ID, LARGEST_ID = 256, 2**53


def _storable(text: str) -> str:
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
        if len(_storable(value)) > LONGEST_ID:
            raise ValueError(f"has {len(value)} characters, at most {LONGEST_ID} are allowed")
    return value


StorableText = Annotated[Text, AfterValidator(_storable)]
"""A text that is not blank and that every store accepts."""

RowId = Annotated[int | str, BeforeValidator(_row_id)]


class Row(BaseModel):
    """A question with its answer.

    A row without an id gets an id made from its question, so that later files update the same row.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: RowId = Field(description="a text or a whole number; left out: made of the question")
    question: StorableText
    answer: StorableText

    @model_validator(mode="before")
    @classmethod
    def _identified(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and fields.get("id") is None:
            question = fields.get("question")
            if isinstance(question, str):
                return {**fields, "id": made_id(question)}
        return fields

    @property
    def metadata(self) -> Properties:
        """The properties of the row's chunk."""
        return {"question": self.question, "answer": self.answer, "id": self.id}

    def text(self, strategy: Strategy) -> str:
        """Return the text that the strategy embeds."""
        match strategy:
            case "question":
                return self.question
            case "answer":
                return self.answer
            case "question_answer":
                return f"{self.question}\n\n{self.answer}"


def made_id(question: str) -> str:
    """Return the id of a row without one: a hash of its question."""
    text = normalized("NFC", question.encode("utf-8", "replace").decode()).strip()
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def entry_id(row_id: object) -> str:
    """Return the id of a row in every collection, such as `faq_7`."""
    return f"faq_{row_id}"


def twice(ids: Mapping[int, int | str]) -> dict[int, int]:
    """Return the position of each repeated id, mapped to the position of its first occurrence."""
    first: dict[str, int] = {}
    again: dict[int, int] = {}
    for at, row_id in ids.items():
        before = first.setdefault(entry_id(row_id), at)
        if before != at:
            again[at] = before
    return again
