"""Settings of the agent that answers questions."""

from typing import Literal

from pydantic import Field

from config.section import Section


class AgentSettings(Section):
    """Answers: how they are found, checked and remembered."""

    threads: int = Field(
        default=2, ge=1, description="questions answered at the same time by one worker"
    )
    niceness: int = Field(
        default=5, ge=0, le=19, description="of the answer worker, so that searches go first"
    )
    timeout_seconds: float = Field(
        default=60.0, gt=0, description="the desk waits this long for an answer"
    )
    max_backlog: int = Field(
        default=32, ge=1, description="questions waiting before the desk answers 503"
    )
    max_iters: int = Field(
        default=2,
        ge=0,
        le=2,
        description="how often another way is tried where an answer is not approved",
    )
    confidence_threshold: float = Field(
        default=0.75,
        ge=0,
        le=1,
        description="an answer is approved from this confidence on; docs/quality.md has the curve",
    )
    hits: int = Field(
        default=20, ge=1, le=40, description="passages that each attempt keeps, after ranking"
    )
    sentences: int = Field(
        default=2, ge=1, le=8, description="most sentences of an answer without a language model"
    )
    passages: int = Field(
        default=6, ge=1, le=20, description="most passages that the language model is given"
    )
    judge: Literal["rules", "model"] = Field(
        default="rules",
        description="who checks that the sentences of the language model are said by what they"
        " cite: rules; model: the language model too, in another call",
    )
    keep_days: float = Field(
        default=30.0, gt=0, description="how long a conversation is kept after its last question"
    )
