"""/v1/answer and /v1/collections/{name}/conversations: questions to the agent."""

from collections.abc import Callable, Iterator

from flask import Response, request
from flask_openapi3 import APIBlueprint, Tag
from flask_openapi3.models import MediaType, Schema
from pydantic import ConfigDict

from callslip.agent.messages import (
    Answer,
    AnswerRequest,
    Conversation,
    NodeMessage,
    SentenceMessage,
    ThreadId,
)
from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.http.problems import described
from callslip.api.http.slots import Slots
from callslip.api.identity.current import caller, note, spent_tokens, voter
from callslip.api.identity.guard import answer_recorder, stream_check
from callslip.api.identity.limits import check_tokens
from callslip.api.messages.documents import Problem
from callslip.api.messages.memory import OfTenant
from callslip.api.v1.collections import CollectionPath, collection_of
from callslip.api.v1.events import HEADERS
from callslip.errors import CallslipError, Overloaded
from callslip.retrieval.query.plan import check_query
from callslip.stores.properties.filters import parse
from callslip.tasks import answer as agent

EVENTS = "text/event-stream"

KIND: dict[type, str] = {NodeMessage: "node", SentenceMessage: "sentence", Answer: "answer"}
"""The kind of each event of a stream."""

Followed = Iterator[agent.Followed]
"""A message for each node of the graph that has run and each sentence, then the answer."""


class _Answered(Answer):
    __doc__ = Answer.__doc__

    model_config = ConfigDict(
        title=Answer.__name__,
        openapi_extra={  # type: ignore[typeddict-unknown-key]  # flask-openapi3's
            "description": "with `Accept: text/event-stream`: `event: node` for each node that has"
            " run, `event: sentence` for each sentence as soon as it is approved, then `event:"
            " answer`, or `event: error` with a problem",
            "content": {EVENTS: MediaType(schema=Schema(**NodeMessage.model_json_schema()))},
        },
    )


blueprint = APIBlueprint("answers", __name__, abp_tags=[Tag(name="answer")])

_slots = Slots()


class ConversationPath(CollectionPath):
    """A conversation of a collection."""

    thread_id: ThreadId


@blueprint.post("/v1/answer", responses={200: _Answered})
def answer_question(body: AnswerRequest) -> Response:
    """Answer a question from the documents with citations, or report that they have no answer.

    With `Accept: text/event-stream` the response is a stream: an event for each node of the graph
    that has run and each sentence that is approved, then the answer.
    """
    if EVENTS not in request.accept_mimetypes.values():
        return answer(ask(body))
    return stream(body, _events)


def ask(body: AnswerRequest, *, again: bool = False) -> Answer:
    """Wait for the answer in one of the process's slots; raise Overloaded if none is free.

    `again` as in `Agent.answer`.
    """
    body = _take_slot(body)
    try:
        made = agent.ask(current(), body, again=again)
        note(trace_id=made.trace_id)
        spent_tokens(made.usage.input_tokens + made.usage.output_tokens)
        return made
    finally:
        _slots.give_back()


def stream(body: AnswerRequest, render: Callable[[Followed], Iterator[str]]) -> Response:
    """Answer with server-sent events: `render` converts the node messages and the answer."""
    body = _take_slot(body)
    try:
        followed = agent.follow(current(), body)
        events = render(_recorded(followed, answer_recorder(), stream_check()))
    except BaseException:
        _slots.give_back()
        raise
    response = Response(events, content_type=EVENTS, headers=HEADERS)
    response.call_on_close(_slots.give_back)
    response.call_on_close(followed.close)
    return response


@blueprint.get(
    "/v1/collections/<string:name>/conversations/<string:thread_id>",
    responses={200: Conversation},
)
def get_conversation(path: ConversationPath, query: OfTenant) -> Response:
    """The questions and answers of the conversation `thread_id`."""
    collection_of(path.name, query.tenant)
    return answer(agent.look(current(), path.name, query.tenant, path.thread_id))


@blueprint.delete(
    "/v1/collections/<string:name>/conversations/<string:thread_id>",
    responses={200: Conversation},
)
def delete_conversation(path: ConversationPath, query: OfTenant) -> Response:
    """Delete a conversation and return its turns, to a caller who may read."""
    collection_of(path.name, query.tenant)
    deleted = agent.forget(current(), path.name, query.tenant, path.thread_id)
    shown = deleted if caller().may("read") else deleted.model_copy(update={"turns": []})
    return answer(shown)


def _recorded(
    followed: Followed, record: Callable[[str, int], None], check: Callable[[], None]
) -> Followed:
    """Add the answer's id and tokens to the audit log, whose row for the request has neither.

    `check` raises KeyRefused once the caller has no access any more.
    """
    for message in followed:
        if isinstance(message, Answer):
            record(message.trace_id, message.usage.input_tokens + message.usage.output_tokens)
        check()
        yield message


def _take_slot(body: AnswerRequest) -> AnswerRequest:
    """Check the question, and return it as that of its asker."""
    # An invalid question is refused here, without a message to the queue.
    check_query(body.question, current().settings.search.max_query_chars)
    parse(body.having_all, body.having_any)
    collection_of(body.collection, body.tenant or "")
    owned = body.model_copy(update={"user": voter(body.user)})
    check_tokens()
    most = current().settings.api.answers
    if not _slots.take(most):
        raise Overloaded(
            f"{most} questions are waited for in this process of the server",
            hint="Try again in a few seconds, or raise api.answers in the settings.",
        )
    return owned


def _events(followed: Followed) -> Iterator[str]:
    try:
        for message in followed:
            yield f"event: {KIND[type(message)]}\ndata: {message.model_dump_json()}\n\n"
    except CallslipError as error:
        yield f"event: error\ndata: {Problem(**described(error)).model_dump_json()}\n\n"
