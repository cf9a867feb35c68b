"""Whether the server and its parts are ready."""

from typing import Literal

from callslip.messages.base import Message, Word


class Health(Message):
    """The server itself is alive."""

    status: Word[Literal["ok"]]
    version: str


class Part(Message):
    """One part of the system."""

    ready: bool
    reason: str | None = None


class Readiness(Message):
    """Whether the server can do new work."""

    ready: bool
    parts: dict[str, Part]
