"""The words that parameters take."""

from typing import Literal

Store = Literal["chroma", "weaviate", "crate", "tfidf"]

Metric = Literal["cosine", "dot", "l2-squared", "hamming", "manhattan"]

Vectors = Literal["ours", "none"]

Fusion = Literal["calibrated", "weighted", "rrf", "native"]

ParentStrategy = Literal["include", "replace"]

Verdict = Literal["helpful", "unhelpful", "validated"]

State = Literal["waiting", "working", "stalled", "live", "failed", "superseded", "deleted"]

UNDERWAY: tuple[State, ...] = ("waiting", "working", "stalled")

DeliveryState = Literal["waiting", "delivered", "given-up"]

EventKind = Literal[
    "document.queued",
    "document.live",
    "document.failed",
    "document.superseded",
    "document.deleted",
    "document.removed",
    "step.started",
    "step.finished",
    "step.retrying",
    "step.failed",
]
