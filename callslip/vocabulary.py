"""Words and limits that server, client and command line share: only literals and constants.

This module imports only the standard library, so that a command which only talks to the server need
not import a store or the ledger for a constant.
"""

from typing import Literal, get_args

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}[A-Za-z0-9]$|^[A-Za-z0-9]$"
"""The pattern of the names of collections, sources and batches."""

LONGEST_NAME = 64
"""The characters that `NAME` allows at most."""

THREAD = r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$"
"""The pattern of the names of conversations.

They are parts of URL paths, so none is `.` or `..`, which would change the path.
"""

DEFAULT_COLLECTION = "main"
"""The collection of commands and pages without a collection name."""

StoreKind = Literal["chroma", "weaviate", "crate", "tfidf"]

Metric = Literal["cosine", "dot", "l2-squared", "hamming", "manhattan"]
METRICS: tuple[Metric, ...] = get_args(Metric)

AnalyzerKind = Literal["default", "english", "korean", "words", "bigrams"]
"""The kinds of analyzers of keyword indexes (models/text/kinds.py)."""

Fusion = Literal["calibrated", "weighted", "rrf", "native"]
"""How the scores of both retrievers are merged. `native` is the method of the store; Callslip
computes all others, equally for every store."""

ParentStrategy = Literal["include", "replace"]

LANGUAGE = r"^[a-z]{2,3}$"
"""The pattern of a language's code (ISO 639) that a client states for a document."""

PageUnit = Literal["page", "slide", "sheet", "chapter"]

TimeSource = Literal["given", "understood", "default"]
"""The source of a search's time: the request, the question, or the settings."""

Verdict = Literal["helpful", "unhelpful", "validated"]
"""validated: by the validator of an answer; the other verdicts are a person's."""

Vectors = Literal["ours", "previous", "none"]
"""The embedder of an attached table's vectors: that of the settings, their previous one, or an
unknown one."""

DEFAULT_VECTOR = "default"
"""The name of the unnamed vector where all vectors of a chunk are named."""

ProposalKind = Literal["ranking", "facets"]
ProposalState = Literal[
    "running", "nothing", "waiting", "applied", "declined", "superseded", "failed"
]

Certainty = Literal["sure", "probably", "not sure"]

SURE = 0.8
"""The confidence from which an approved answer is called sure."""

MEASURED = 0.55
"""The confidence from which the share of right answers was measured (docs/quality.md, Answers)."""


def share_right(confidence: float, *, approved: bool, by_model: bool) -> str:
    """Say which share of such answers was right; empty if that was not measured."""
    if not approved or by_model or confidence < MEASURED:
        return ""
    share = "9 of 10" if confidence >= SURE else "6 of 10"
    return f"about {share} such answers were right"


def certainty_of(confidence: float, *, approved: bool) -> Certainty:
    """Say the confidence of an answer as a word. A refusal is never sure."""
    if not approved:
        return "not sure"
    return "sure" if confidence >= SURE else "probably"


FILTERABLE = (
    *("chunk_id", "document_id", "parent_id", "section", "filename", "title", "lang"),
    *("level", "ordinal"),
)
"""Fields of a chunk that filters can use in addition to its properties. No property may have such a
name."""

VALIDITY = ("valid_from", "valid_to")
"""The first day on which a text is in force, and the first on which it no longer is."""


def in_force(valid_from: str | None, valid_to: str | None) -> str:
    """Return the days in words, such as `in force from 2027-11-12`; empty without any."""
    days = (("from", valid_from), ("until", valid_to))
    words = " ".join(f"{word} {day}" for word, day in days if day)
    return words and f"in force {words}"


def not_in_force(documents: int, day: str, any_day: str) -> str:
    """Say that a search left out passages of so many documents; `any_day` is what includes them."""
    of = "1 document" if documents == 1 else f"{documents} documents"
    return f"Passages of {of} are not in force on {day}; {any_day} includes them."


TIMES = ("created_at", "updated_at")
"""Fields of a chunk that filters can use too, unless it has a property of this name."""

Scalar = str | float | int | bool
Value = Scalar | list[str] | list[float] | list[bool]
"""A property value. A string in ISO 8601 form is a date; all items of a list have one type."""

MOST_COMPARED = 1000
"""The most files in one request that asks which of them are unchanged."""

PRIORITIES = (-10, 10)
"""The least and the greatest priority of a submission; 0 if the request has none."""

Step = Literal["extract", "sectionize", "chunk", "enrich", "embed", "upsert"]
STEPS: tuple[Step, ...] = get_args(Step)
"""The steps of a document, in order."""

VersionState = Literal["queued", "live", "superseded", "failed"]
ShownVersionState = Literal[VersionState, "deleted"]
"""The state of a version that users see. deleted: it was live until the document was deleted."""

VersionOrigin = Literal["submitted", "edited", "cut", "corrected", "restored"]
"""How a version was made. edited: other properties; cut: other lengths of chunks; corrected: a text
with more corrections; restored: the content of an older version."""

StepState = Literal["pending", "running", "done", "failed"]

DocumentState = Literal["waiting", "working", "stalled", "live", "failed", "deleted"]
"""The state that users see. waiting: for a free worker; stalled: without one until the next
sweep."""

ItemState = Literal["waiting", "working", "stalled", "live", "failed", "superseded", "deleted"]
"""The state of a document of a batch."""

UNDERWAY: tuple[ItemState, ...] = ("waiting", "working", "stalled")
"""States of unfinished documents."""

LeftOut = Literal["not-found", "ambiguous", "already-right"]
"""Why a correction does not apply to a text: what it corrects is not there, is there more than once
and not where it was, or is there as the correction has it."""

EventKind = Literal[
    "document.queued",
    "document.live",
    "document.failed",
    "document.superseded",
    "document.uncorrected",
    "document.edited",
    "document.deleted",
    "document.removed",
    "step.started",
    "step.finished",
    "step.retrying",
    "step.failed",
]

DeliveryState = Literal["waiting", "delivered", "given-up"]
"""The state of an event that is sent to a webhook."""

WITHOUT_EXPLORATION: dict[str, float] = {"exploration_ratio": 0.0}
"""The ranking parameters of a caller that wants the best hits alone: the command line, MCP, the
plug-ins, the adapters and the agent."""

STAGES = {
    "planner": "searching",
    "rerank_diversify": "reading",
    "answerer": "checking",
}
"""What the agent does after a node has run, in one word for a waiting user."""
