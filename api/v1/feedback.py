"""/v1/feedback and /debug/trace: feedback about a search, and the trace of a search."""

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel

from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.identity.current import caller, note, voter
from callslip.api.messages.memory import Feedback, NewFeedback, TraceMessage
from callslip.errors import InvalidRequest, TraceNotFound
from callslip.retrieval.chance import is_id
from callslip.stores.ledger import OutcomeRecord, RetrievalEvent, TraceRecord
from callslip.stores.ledger.learning.searches import no_trace

blueprint = APIBlueprint("feedback", __name__, abp_tags=[Tag(name="feedback")])

PATIENCE_SECONDS = 1.0
"""A search is recorded a moment after its response is sent (`recording.GATHER_SECONDS`); feedback,
or a request for its trace, can arrive earlier."""

T = TypeVar("T", RetrievalEvent, TraceRecord)


class FeedbackPath(BaseModel):
    feedback_id: str


class TracePath(BaseModel):
    trace_id: str


@blueprint.post("/v1/feedback", responses={200: Feedback, 201: Feedback})
def give_feedback(body: NewFeedback) -> Response:
    """Record whether the hits of a search, or the citations of an answer, helped.

    Helpful chunks rank higher for similar questions from now on.

    A repeated call returns the stored feedback with 200.
    """
    event = _waited_for(body.trace_id, current().ledger.searches.get)
    note(collection=event.collection, tenant=event.tenant, trace_id=event.trace_id)
    current().ledger.collections.writable(event.collection)  # an attached table has no memory
    outcome, new = current().learning.outcome(
        body.trace_id,
        [*body.chunk_ids, *_cited(event, body)],
        body.verdict,
        user=voter(body.user),
        key=body.idempotency_key,
        limited=True,
    )
    return answer(_message(outcome), 201 if new else 200)


@blueprint.delete("/v1/feedback/<string:feedback_id>", responses={200: Feedback})
def withdraw_feedback(path: FeedbackPath) -> Response:
    """Withdraw feedback, and undo its effect on the memory."""
    return answer(_message(current().learning.withdraw(path.feedback_id)))


@blueprint.get("/debug/trace/<string:trace_id>", responses={200: TraceMessage})
def get_trace(path: TracePath) -> Response:
    """The trace of a search: times, weights, branches, every part of every score."""
    body = dict(read_trace(path.trace_id).body)
    if body.get("answer"):  # its sentences are shown by /v1/answers
        body["answer"] = {k: v for k, v in body["answer"].items() if k != "record"}
    outcomes = [_message(outcome) for outcome in current().ledger.outcomes.of_trace(path.trace_id)]
    return answer(TraceMessage(trace=body, outcomes=outcomes))


def read_trace(trace_id: str) -> TraceRecord:
    """Read a trace that may be on its way.

    Raises TraceNotFound if there is none, or the caller may not see it.
    """
    keep_seconds = current().settings.traces.keep_hours * 3600.0
    return _waited_for(
        trace_id, partial(current().ledger.searches.trace, keep_seconds=keep_seconds)
    )


def _check_sees(recorded: RetrievalEvent | TraceRecord) -> None:
    """Raise the error of an unknown id unless the caller may see this search."""
    if not caller().sees(recorded.collection, recorded.tenant):
        raise no_trace(recorded.trace_id)


def _cited(event: RetrievalEvent, body: NewFeedback) -> list[str]:
    """The chunks of the requested citations; raise InvalidRequest for unknown numbers."""
    if body.chunk_ids and not body.citations:
        return []
    cited: list[str] = event.settings.get("cited", [])
    if not cited:
        raise InvalidRequest(
            "chunk_ids is missing: this was a search, or an answer without citations",
            hint="Send the chunk_ids of the hits that you mean.",
        )
    if unknown := [n for n in body.citations if n > len(cited)]:
        raise InvalidRequest(
            f"the answer has {len(cited)} citations, not one of number {unknown[0]}"
        )
    return [cited[n - 1] for n in body.citations or range(1, len(cited) + 1)]


def _waited_for(trace_id: str, read: Callable[[str], T]) -> T:
    """Read what may be on its way; what the caller may not see takes as long as what is nowhere."""
    if not is_id(trace_id):
        raise no_trace(trace_id)
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            recorded = read(trace_id)
            _check_sees(recorded)
        except TraceNotFound:
            if time.monotonic() > until:
                raise
            time.sleep(PATIENCE_SECONDS / 20)
        else:
            return recorded


def _message(outcome: OutcomeRecord) -> Feedback:
    plain = {
        name: getattr(outcome, name) for name in Feedback.model_fields if name != "feedback_id"
    }
    return Feedback.model_validate(plain | {"feedback_id": outcome.outcome_id})
