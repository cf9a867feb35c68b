"""The context of one run of the graph, which does not change during the run."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callslip.agent.budget import Budgeted
from callslip.agent.messages import SentenceMessage
from callslip.agent.reports import NodeReport
from callslip.config.settings import Settings
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.tracing.recording import Learning

if TYPE_CHECKING:
    from callslip.models.telemetry import Spans

MODEL_SHARE = 0.8
"""The share of an answer's time limit that calls of the language model may take."""


@dataclass(frozen=True)
class RunContext:
    """The resources and callbacks of a run.

    `model` is None if no language model is used. `spans` is set if a telemetry collector is
    configured. `on_node` is called after each node, `on_sentence` with each sentence that is
    certain to be in the answer. `started` is in seconds since 1970.
    """

    resources: Resources
    learning: Learning
    settings: Settings
    model: Budgeted | None = None
    spans: "Spans | None" = None
    on_node: Callable[[NodeReport], None] = lambda report: None
    on_sentence: Callable[[SentenceMessage], None] = lambda sentence: None
    started: float = field(default_factory=time.time)

    def seconds_for_model(self) -> float:
        """Return the remaining seconds for calls of the language model, at least 1."""
        return max(
            1.0,
            min(
                self.settings.llm.timeout_seconds,
                self.settings.agent.timeout_seconds * MODEL_SHARE - (time.time() - self.started),
            ),
        )
