"""Tasks that answer questions with the agent, and the functions with which the API queues them.

The tasks have a separate queue, so that they never delay a search. They import the graph when they
run: the API only queues them, so it never loads LangGraph.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from celery import shared_task
from kombu.exceptions import OperationalError
from redis.exceptions import LockError

from callslip import logs
from callslip.agent.messages import (
    Answer,
    AnswerRequest,
    Conversation,
    NodeMessage,
    SentenceMessage,
)
from callslip.agent.reports import NodeReport
from callslip.errors import (
    AnswerTimeout,
    BrokerDown,
    CallslipError,
    Conflict,
    Overloaded,
    PermanentError,
)
from callslip.http.deadline import until as by
from callslip.readers import Reader, as_json
from callslip.retrieval.query.followups import Standing
from callslip.tasks.composition import Context, current
from callslip.tasks.maintenance import DAY_SECONDS
from callslip.tasks.queues import ANSWER
from callslip.tasks.shared import replies
from callslip.tasks.shared.broker import backlog
from callslip.tasks.shared.locks import alone
from callslip.tasks.shared.metering import ANSWER_TIME, ANSWERS, ERRORS, named

if TYPE_CHECKING:
    from callslip.agent.state import Turn

log = logging.getLogger(__name__)

Followed = NodeMessage | SentenceMessage | Answer
"""What a stream has: nodes that have run, sentences that are certain, at last the answer."""

TRIM_EVERY_SECONDS = 3600.0

HIDDEN = "This answer is from documents that you may no longer read."
"""The text of an earlier answer to a reader, in place of its own."""

NODE = "node"
"""The key of a reply that reports a node of the graph that has run."""


SENTENCE = "sentence"
"""The key of a reply with a sentence that is certain to be in the answer."""


class _CallerGone(Exception):
    """The caller of a stream has left."""


class Replies(Iterator[Followed]):
    """The replies to a question, up to the answer."""

    def __init__(self, context: Context, reply_to: str, until: float) -> None:
        self._context, self._reply_to, self._until = context, reply_to, until
        self._replies = replies.receive(context.broker, reply_to, until)
        self._ended = False

    def __next__(self) -> Followed:
        if self._ended:
            raise StopIteration
        try:
            reply = next(self._replies, None)
            if reply is None:
                raise _late(self._context.settings.agent.timeout_seconds)
            message = _message(reply)
        except Exception:
            self._ended = True
            raise
        self._ended = isinstance(message, Answer)
        return message

    def close(self) -> None:
        """Tell the worker that the reader has left, unless the replies ended, even in an error."""
        if not self._ended:
            replies.abandon(self._context.broker, self._reply_to, self._until - time.time())


@shared_task(name="answer.ask")
def answer(
    request: dict[str, Any],
    reply_to: str,
    deadline: float,
    *,
    stream: bool,
    again: bool = False,
    reader: dict[str, Any] | None = None,
) -> None:
    """Answer a question, and push the answer to the list `reply_to`; `again` as in `Agent.answer`.

    With `stream`, also push a report of each node that has run and each sentence that is certain,
    and end early if the caller is gone. Does nothing after the `deadline` (UTC seconds since 1970).
    The answer is from documents that the `reader` may read; without one, from all.
    """
    context = current().for_reader(Reader.of_json(reader))
    waited = time.time() - (deadline - context.settings.agent.timeout_seconds)
    fields: dict[str, Any] = {
        "collection": str(request.get("collection")),
        "queue_ms": logs.milliseconds(waited),
    }
    if time.time() > deadline:
        context.meter.add(named(ANSWERS, "late"))
        logs.event(log, "answer", logging.WARNING, **fields, outcome="late")
        return
    started = time.perf_counter()

    def tell(report: NodeReport) -> None:
        if replies.is_abandoned(context.broker, reply_to):
            raise _CallerGone
        replies.send(context.broker, reply_to, {NODE: report.__dict__})

    def send(sentence: SentenceMessage) -> None:
        replies.send(context.broker, reply_to, {SENTENCE: sentence.model_dump(mode="json")})

    try:
        question = AnswerRequest(**request)
        with _turn(context, question, deadline):
            callbacks = (tell, send) if stream else ()
            with by(deadline):
                result = context.agent.answer(question, *callbacks, again=again)
        reply: replies.Reply = {"ok": result.model_dump(mode="json")}
        outcome = "answered" if result.answered else "not-here"
        fields |= _figures(result)
    except _CallerGone:
        context.meter.add(named(ANSWERS, "abandoned"))
        logs.event(log, "answer", **fields, outcome="abandoned")
        return
    except Exception as error:
        reply = replies.failed(error, "answer")
        fields["reason"] = error.slug if isinstance(error, CallslipError) else type(error).__name__
        context.meter.add(named(ERRORS, "answer", fields["reason"]))
        outcome = "refused" if isinstance(error, PermanentError) else "failed"
    replies.send(context.broker, reply_to, reply)
    took = time.perf_counter() - started
    context.meter.add(named(ANSWERS, outcome))
    context.meter.took(ANSWER_TIME, took)
    level = logging.WARNING if outcome == "failed" else logging.INFO
    logs.event(log, "answer", level, **fields, outcome=outcome, ms=logs.milliseconds(took))


def _figures(result: Answer) -> dict[str, Any]:
    """The fields of an answer for the log: ids and numbers, no text."""
    return {
        "trace_id": result.trace_id,
        "verdict": result.verdict.reason,
        "attempts": len(result.attempts),
        "citations": len(result.citations),
        "input_tokens": result.usage.input_tokens,
        "output_tokens": result.usage.output_tokens,
    }


@shared_task(name="answer.conversation")
def conversation(
    collection: str,
    tenant: str,
    thread_id: str,
    reply_to: str,
    *,
    forget: bool,
    reader: dict[str, Any] | None = None,
) -> None:
    """Push a conversation to the list `reply_to`; with `forget`, delete the conversation.

    It is the conversation that the `reader` began.
    """
    context = current().for_reader(Reader.of_json(reader))
    try:
        thread, turns = context.conversations.turns(collection, tenant, thread_id)
        if forget:
            context.conversations.forget(collection, tenant, thread_id)
        message = Conversation.model_validate(
            thread.__dict__ | {"turns": [_turn_fields(context, t) for t in turns]}
        )
        reply: replies.Reply = {"ok": message.model_dump(mode="json")}
    except Exception as error:
        reply = replies.failed(error, "conversation")
    replies.send(context.broker, reply_to, reply)


@shared_task(name="answer.trim")
def trim() -> None:
    """Delete conversations that are too old, or whose collection or tenant was deleted."""
    context = current()
    with alone(context.broker, "conversations") as lock:
        if lock is not None:
            context.conversations.trim(time.time() - context.settings.agent.keep_days * DAY_SECONDS)


def ask(context: Context, request: AnswerRequest, *, again: bool = False) -> Answer:
    """Queue a question and wait for its answer; `again` as in `Agent.answer`.

    Raises the error of the task, Overloaded if too many questions are waiting or no worker reads
    the queue, AnswerTimeout if no answer arrives in time, BrokerDown if the broker does not answer.
    """
    for reply in _queued(context, request, stream=False, again=again):
        if isinstance(reply, Answer):
            return reply
    raise _late(context.settings.agent.timeout_seconds)


def follow(context: Context, request: AnswerRequest) -> Replies:
    """Queue a question at once; iterate over reports of nodes, sentences, and the answer.

    Close the iterator if its reader is gone, even before its first message: then the worker ends
    early.

    Raises the errors of `ask`.
    """
    return _queued(context, request, stream=True)


def look(context: Context, collection: str, tenant: str, thread_id: str) -> Conversation:
    """Return a conversation.

    Raises ThreadNotFound if it does not exist, Overloaded if no worker reads the queue,
    AnswerTimeout if no reply arrives in time, BrokerDown if the broker does not answer.
    """
    return _conversation(context, collection, tenant, thread_id, forget=False)


def forget(context: Context, collection: str, tenant: str, thread_id: str) -> Conversation:
    """Delete a conversation and return it. Raises the errors of `look`."""
    return _conversation(context, collection, tenant, thread_id, forget=True)


def _conversation(
    context: Context, collection: str, tenant: str, thread_id: str, *, forget: bool
) -> Conversation:
    wait = context.settings.search.timeout_seconds
    context.consumers.check(ANSWER)
    reply_to, until = replies.new_address(), time.time() + wait
    arguments = (collection, tenant, thread_id, reply_to)
    _queue(context, conversation, arguments, wait, forget=forget)
    for reply in replies.receive(context.broker, reply_to, until):
        return Conversation(**reply["ok"])
    raise _late(wait)


def _queued(
    context: Context, request: AnswerRequest, *, stream: bool, again: bool = False
) -> Replies:
    settings = context.settings.agent
    context.consumers.check(ANSWER)
    if (waiting := backlog(context.broker, ANSWER)) >= settings.max_backlog:
        raise Overloaded(f"{waiting} questions are waiting")
    wait = settings.timeout_seconds
    reply_to, until = replies.new_address(), time.time() + wait
    options = {"stream": stream} | ({"again": True} if again else {})  # as earlier workers read it
    _queue(context, answer, (request.model_dump(mode="json"), reply_to, until), wait, **options)
    return Replies(context, reply_to, until)


def _queue(
    context: Context, task: Any, arguments: tuple[Any, ...], expires: float, **options: bool
) -> None:
    fields = {**options, "reader": as_json(context.reader)}
    try:
        task.apply_async(arguments, fields, queue=ANSWER, expires=expires)
    except OperationalError as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error


def _turn_fields(context: Context, turn: "Turn") -> dict[str, Any]:
    hidden = context.reader and context.ledger.searches.is_hidden(turn["trace_id"])
    text = HIDDEN if hidden else turn["text"]
    understood = Standing(turn["base"], tuple(turn["tails"])).text
    return {**turn, "text": text, "understood": understood}


def _late(seconds: float) -> AnswerTimeout:
    return AnswerTimeout(f"no answer within {seconds:g} s")


def _message(reply: replies.Reply) -> Followed:
    if NODE in reply:
        return NodeMessage(**reply[NODE])
    if SENTENCE in reply:
        return SentenceMessage(**reply[SENTENCE])
    return Answer(**reply["ok"])


@contextmanager
def _turn(context: Context, request: AnswerRequest, deadline: float) -> Iterator[None]:
    """Lock a conversation for one question: the next question depends on the answer to this one.

    Raises Conflict if the lock is not free before the deadline.
    """
    if request.thread_id is None:
        yield
        return
    owner = (context.reader.owner,) if context.reader else ()
    conversation_key = ":".join(
        (request.collection, request.tenant or "", request.thread_id, *owner)
    )
    wait = max(0.0, deadline - time.time())
    try:
        with context.broker.lock(
            f"turn:{conversation_key}", timeout=wait + 1, blocking_timeout=wait
        ):
            yield
    except LockError as error:
        raise Conflict(
            f"conversation {request.thread_id!r} is busy with another question",
            hint="Wait for that answer, then ask again.",
        ) from error
