"""Errors in responses."""

from pydantic import Field

from callslip.messages.base import Message


class Problem(Message):
    """An error (RFC 9457); `advice` says how to correct it."""

    type: str = Field(examples=["urn:callslip:problem:collection-not-found"])
    title: str
    status: int
    detail: str
    advice: str
    errors: list[dict[str, str]] = Field(
        default=[], description="field and message, one per wrong value"
    )


class FailureMessage(Message):
    """Why a document failed, and how to correct it."""

    type: str
    title: str
    detail: str
    advice: str
    step: str | None = None
