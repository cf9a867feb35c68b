"""Documents that failed for good."""

from pydantic import Field

from callslip.messages.base import Message
from callslip.messages.problems import FailureMessage


class DeadLetter(Message):
    """A document that failed for good."""

    document_id: str
    version: int
    collection: str
    tenant: str
    name: str
    live_version: int | None = Field(description="an older version that searches still see")
    step: str | None = Field(description="the step that failed")
    attempts: int = Field(description="of that step")
    crashes: int = Field(description="attempts whose worker died")
    submitted_at: float
    failed_at: float
    error: FailureMessage


class DeadLetters(Message):
    """Documents whose newest version failed, the latest first."""

    dead_letters: list[DeadLetter]
    next_after: str | None = Field(description="send as `after` for the next page")


class Retried(Message):
    """Documents that wait for a worker again."""

    retried: list[str] = Field(description="document ids")
    more: bool = Field(description="true: repeat the request for the rest")
