"""What the nodes of one run work with, and what they say of themselves."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from agent.budget import Budgeted
from config.settings import Settings
from retrieval.engine import Engine
from retrieval.learning import Learning

if TYPE_CHECKING:
    from models.telemetry import Spans

MODEL_SHARE = 0.8
"""Of the time for an answer: the rest is for finding it, and for doing without the model."""


class Step(NamedTuple):
    """What a node gives: the fields of the state that it changes, and facts for the trace.

    Facts are numbers, names and ids, never text of a question or a document.
    """

    update: dict[str, Any]
    facts: dict[str, Any]


@dataclass(frozen=True)
class NodeReport:
    """One run of a node: in which attempt (from 0), how long, what it chose and saw."""

    node: str
    attempt: int
    milliseconds: float
    facts: Mapping[str, Any]


@dataclass
class Run:
    """Everything but the state. `model` is None where no language model is to write.

    `spans` are made where a collector is set up.
    """

    engine: Engine
    learning: Learning
    settings: Settings
    model: Budgeted | None = None
    spans: "Spans | None" = None
    on_node: Callable[[NodeReport], None] = lambda report: None
    reports: list[NodeReport] = field(default_factory=list)
    model_left_out: str | None = None
    started: float = field(default_factory=time.time)

    def add(self, report: NodeReport) -> None:
        """Note that a node ran."""
        self.reports.append(report)
        self.on_node(report)

    def left(self) -> float:
        """Seconds that a call of the language model may take: of the question's, what is left."""
        return max(
            1.0,
            min(
                self.settings.llm.timeout_seconds,
                self.settings.agent.timeout_seconds * MODEL_SHARE - (time.time() - self.started),
            ),
        )

    def leave_model_out(self, reason: str) -> None:
        """The language model failed once: the rest of this run does without it."""
        self.model, self.model_left_out = None, self.model_left_out or reason
