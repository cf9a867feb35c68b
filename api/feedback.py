"""/v1/feedback and /debug/trace: what was said of a search, and how it came to its hits."""

import time

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel

from api.answers import answer
from api.memory_messages import Feedback, NewFeedback, TraceMessage
from callslip.errors import InvalidRequest, TraceNotFound
from config import get_settings
from stores.ledger import OutcomeRecord, RetrievalEvent
from tasks.process import ledger
from tasks.recording import learning

blueprint = APIBlueprint("feedback", __name__, abp_tags=[Tag(name="feedback")])

PATIENCE_SECONDS = 0.5
"""A search is recorded just after its answer went out; feedback may be that quick."""


class FeedbackPath(BaseModel):
    feedback_id: str


class TracePath(BaseModel):
    trace_id: str


@blueprint.post("/v1/feedback", responses={200: Feedback, 201: Feedback})
def give_feedback(body: NewFeedback) -> Response:
    """Say that hits of a search, or what an answer cites, helped, or did not.

    Such questions find what helped sooner from now on.

    The same call again answers 200 with the feedback as it is.
    """
    event = _waited_for(body.trace_id)
    ledger().collections.writable(event.collection)  # nothing is learned of others' rows
    outcome, new = learning().outcome(
        body.trace_id,
        [*body.chunk_ids, *_cited(event, body)],
        body.verdict,
        user=body.user,
        key=body.idempotency_key,
        limited=True,
    )
    return answer(_message(outcome), 201 if new else 200)


@blueprint.delete("/v1/feedback/<string:feedback_id>", responses={200: Feedback})
def withdraw_feedback(path: FeedbackPath) -> Response:
    """Take feedback back: what was learned from it is as if it had never been given."""
    return answer(_message(learning().withdraw(path.feedback_id)))


@blueprint.get("/debug/trace/<string:trace_id>", responses={200: TraceMessage})
def get_trace(path: TracePath) -> Response:
    """How a search came to its hits: times, weights, branches, every part of every score."""
    keep_seconds = get_settings().traces.keep_hours * 3600.0
    found = ledger().searches.trace(path.trace_id, keep_seconds=keep_seconds)
    said = [_message(outcome) for outcome in ledger().outcomes.of_trace(path.trace_id)]
    return answer(TraceMessage(trace=dict(found.body), outcomes=said))


def _cited(event: RetrievalEvent, body: NewFeedback) -> list[str]:
    """The chunks of the citations that are meant; InvalidRequest for numbers that are none."""
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


def _waited_for(trace_id: str) -> RetrievalEvent:
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return ledger().searches.get(trace_id)
        except TraceNotFound:
            if time.monotonic() > until:
                raise
            time.sleep(PATIENCE_SECONDS / 10)


def _message(outcome: OutcomeRecord) -> Feedback:
    plain = {
        name: getattr(outcome, name) for name in Feedback.model_fields if name != "feedback_id"
    }
    return Feedback.model_validate(plain | {"feedback_id": outcome.outcome_id})
