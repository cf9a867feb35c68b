"""How a move reports its progress and its result."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Progress = Callable[[int, int], None]
"""Called after each document with two counts: all documents, and the chunks of this document."""

Phase = Callable[[str], None]
"""Called at the start of each phase of a move, with a description for the user."""


@dataclass(frozen=True)
class Report:
    """The result of a move, and the comparison of both sides.

    `tenants` has the counts of each tenant ("" if there are none) by kind; `probes` has the
    agreement of both sides' hits, by retriever; `notes` are sentences for the user.
    """

    collection: str
    documents: int
    chunks: int
    seconds: float
    skipped: int = 0
    left_out: int = 0
    tenants: dict[str, dict[str, int]] = field(default_factory=dict)
    probes: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
