"""Settings of the agent that answers questions."""

from typing import Literal

from pydantic import Field

from callslip.config.sections.section import Section


class AgentSettings(Section):
    """How the agent retrieves, checks and stores answers."""

    threads: int = Field(
        default=2, ge=1, description="questions that one worker answers at the same time"
    )
    niceness: int = Field(
        default=5,
        ge=0,
        le=19,
        description="niceness of the answer worker once it is ready, so that searches run first",
    )
    timeout_seconds: float = Field(
        default=60.0, gt=0, description="how long the server waits for an answer"
    )
    max_backlog: int = Field(
        default=32,
        ge=1,
        description="waiting questions; beyond this number the server responds 503",
    )
    max_iters: int = Field(
        default=2,
        ge=0,
        le=2,
        description="further attempts if the validator does not approve an answer; without a"
        " language model only if a passage was not in force",
    )
    reader: bool = Field(
        default=True,
        description="whether the reader, a small network, reads the best passages for the"
        " answer (docs/reader.md); false, or without an embedder: words and vectors alone decide",
    )
    confidence_threshold: float = Field(
        default=0.55,
        ge=0,
        le=1,
        description="the least confidence of an approved answer; docs/quality.md has the curve",
    )
    hits: int = Field(
        default=20, ge=1, le=40, description="passages of each attempt after the ranking"
    )
    sentences: int = Field(
        default=2,
        ge=1,
        le=8,
        description="the most sentences of an answer without a language model; a sentence of"
        " another document that contradicts the first one is added",
    )
    passages: int = Field(
        default=6, ge=1, le=20, description="the most passages in a prompt of the language model"
    )
    judge: Literal["rules", "model"] = Field(
        default="rules",
        description="what checks that cited passages support the language model's sentences:"
        " rules; model: rules and another call of the language model",
    )
    keep_days: float = Field(
        default=30.0, gt=0, description="how long a conversation is stored after its last question"
    )
