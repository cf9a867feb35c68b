"""/v1/answer and /v1/collections/{name}/conversations: questions to the agent."""

from collections.abc import Callable, Iterator

from flask import Response, request
from flask_openapi3 import APIBlueprint, Tag
from flask_openapi3.models import MediaType, Schema
from pydantic import ConfigDict

from agent.messages import Answer, AnswerRequest, Conversation, NodeMessage, ThreadId
from api.answers import answer
from api.collections import CollectionPath, place_of
from api.events import HEADERS
from api.memory_messages import OfTenant
from api.messages import Problem
from api.places import Places
from api.problems import described
from callslip.errors import CallslipError, Overloaded
from config import get_settings
from retrieval.plan import check_query
from stores.filters import parse
from tasks import answer as agent

EVENTS = "text/event-stream"

Followed = Iterator[NodeMessage | Answer]
"""The nodes as they have run, then the answer."""


class _Answered(Answer):
    __doc__ = Answer.__doc__

    model_config = ConfigDict(
        title=Answer.__name__,
        openapi_extra={  # type: ignore[typeddict-unknown-key]  # flask-openapi3's
            "description": "with `Accept: text/event-stream`: `event: node` for each node that has"
            " run, then `event: answer`, or `event: error` with a problem",
            "content": {EVENTS: MediaType(schema=Schema(**NodeMessage.model_json_schema()))},
        },
    )


blueprint = APIBlueprint("answers", __name__, abp_tags=[Tag(name="answer")])

_places = Places(lambda: get_settings().api.answers)


class ConversationPath(CollectionPath):
    """A conversation of a collection."""

    thread_id: ThreadId


@blueprint.post("/v1/answer", responses={200: _Answered})
def answer_question(body: AnswerRequest) -> Response:
    """Answer a question from the documents, with citations, or say that they do not.

    With `Accept: text/event-stream` the answer is a stream: an event for each node of the graph
    that has run, then the answer.
    """
    if EVENTS not in request.accept_mimetypes.values():
        return answer(ask(body))
    return stream(body, _events)


def ask(body: AnswerRequest) -> Answer:
    """Wait for the answer in one of the places that there are for that; Overloaded without one."""
    _take_place(body)
    try:
        return agent.ask(body)
    finally:
        _places.give_back()


def stream(body: AnswerRequest, told: Callable[[Followed], Iterator[str]]) -> Response:
    """The same as server-sent events: what `told` makes of the nodes and of the answer."""
    _take_place(body)
    try:
        events = told(agent.follow(body))
    except BaseException:
        _places.give_back()
        raise
    response = Response(events, content_type=EVENTS, headers=HEADERS)
    response.call_on_close(_places.give_back)
    return response


@blueprint.get(
    "/v1/collections/<string:name>/conversations/<string:thread_id>",
    responses={200: Conversation},
)
def get_conversation(path: ConversationPath, query: OfTenant) -> Response:
    """What was asked under a `thread_id`, and what was answered."""
    place_of(path.name, query.tenant)
    return answer(agent.look(path.name, query.tenant, path.thread_id))


@blueprint.delete(
    "/v1/collections/<string:name>/conversations/<string:thread_id>",
    responses={200: Conversation},
)
def delete_conversation(path: ConversationPath, query: OfTenant) -> Response:
    """Forget a conversation; answers with what it was."""
    place_of(path.name, query.tenant)
    return answer(agent.look(path.name, query.tenant, path.thread_id, forget=True))


def _take_place(body: AnswerRequest) -> None:
    # What cannot be answered is refused here, without a trip through the queue.
    check_query(body.question, get_settings().search.max_query_chars)
    parse(body.having_all, body.having_any)
    place_of(body.collection, body.tenant or "")
    if not _places.take():
        raise Overloaded(
            f"{get_settings().api.answers} questions are waited for in this process of the desk",
            hint="Try again in a few seconds, or raise api.answers in the settings.",
        )


def _events(followed: Followed) -> Iterator[str]:
    try:
        for message in followed:
            kind = "answer" if isinstance(message, Answer) else "node"
            yield f"event: {kind}\ndata: {message.model_dump_json()}\n\n"
    except CallslipError as error:
        yield f"event: error\ndata: {Problem(**described(error)).model_dump_json()}\n\n"
