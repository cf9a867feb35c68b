"""Reports of nodes: state changes, choices, counters and time of each run of a node."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class Step(NamedTuple):
    """The result of a node: the changed fields of the state, and facts for the trace.

    Facts are numbers, names and ids, never text of a question or a document.
    """

    update: dict[str, Any]
    facts: dict[str, Any]


@dataclass(frozen=True)
class NodeReport:
    """One run of a node, with its attempt number (from 0) and its facts."""

    node: str
    attempt: int
    milliseconds: float
    facts: Mapping[str, Any]
