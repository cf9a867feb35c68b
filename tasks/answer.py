"""A question to the agent as queued work, on a queue of its own: it never delays a search.

The graph is imported where it is first used: a desk only queues, and spares itself LangGraph.
"""

import atexit
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from celery import shared_task
from kombu.exceptions import OperationalError
from redis.exceptions import LockError

from agent.budget import Budgeted
from agent.messages import Answer, AnswerRequest, Conversation, NodeMessage
from agent.run import NodeReport
from callslip.errors import AnswerTimeout, BrokerDown, Conflict, Overloaded, PermanentError
from config import get_settings
from models.per_process import PerProcess
from models.registry import make_confirmer, make_spans
from retrieval.followups import Standing
from tasks import replies
from tasks.maintenance import DAY_SECONDS, alone
from tasks.metering import ANSWER_TIME, ANSWERS, meter, model_called, named
from tasks.process import backlog, broker, engine, ledger
from tasks.queues import ANSWER
from tasks.recording import learning

if TYPE_CHECKING:
    from agent.agent import Agent
    from agent.state import Turn
    from agent.threads import Threads

TRIM_EVERY_SECONDS = 3600.0

NODE = "node"
"""Key of a reply that tells of a node."""


@shared_task(name="answer.ask")
def answer(request: dict[str, Any], reply_to: str, deadline: float, *, stream: bool) -> None:
    """Answer into the list `reply_to`, node by node where `stream` asks for it."""
    if time.time() > deadline:
        meter().add(named(ANSWERS, "late"))
        return
    started = time.perf_counter()

    def tell(report: NodeReport) -> None:
        replies.send(reply_to, {NODE: report.__dict__})

    try:
        asked = AnswerRequest(**request)
        with _turn(asked, deadline):
            found = agent().answer(asked, tell if stream else _silent)
        reply: replies.Reply = {"ok": found.model_dump(mode="json")}
        outcome = "answered" if found.answered else "not-here"
    except Exception as error:
        reply = replies.failed(error, "answer")
        outcome = "refused" if isinstance(error, PermanentError) else "failed"
    replies.send(reply_to, reply)
    its = meter()
    its.add(named(ANSWERS, outcome))
    its.took(ANSWER_TIME, time.perf_counter() - started)


@shared_task(name="answer.conversation")
def conversation(
    collection: str, tenant: str, thread_id: str, reply_to: str, *, forget: bool
) -> None:
    """Read a conversation into the list `reply_to`; with `forget` delete it."""
    try:
        found, turns = threads().turns(collection, tenant, thread_id)
        if forget:
            threads().forget(collection, tenant, thread_id)
        told = Conversation.model_validate(found.__dict__ | {"turns": [_told(t) for t in turns]})
        reply: replies.Reply = {"ok": told.model_dump(mode="json")}
    except Exception as error:
        reply = replies.failed(error, "conversation")
    replies.send(reply_to, reply)


@shared_task(name="answer.trim")
def trim() -> None:
    """Forget conversations that are over, or whose collection or tenant is gone."""
    with alone("conversations") as lock:
        if lock is not None:
            threads().trim(time.time() - get_settings().agent.keep_days * DAY_SECONDS)


def ask(request: AnswerRequest) -> Answer:
    """Queue a question and wait for its answer.

    Raises what answering raised, Overloaded when too many wait already, AnswerTimeout when no
    answer came in time, BrokerDown when the broker does not answer.
    """
    for reply in _asked(request, stream=False):
        if isinstance(reply, Answer):
            return reply
    raise _late()


def follow(request: AnswerRequest) -> Iterator[NodeMessage | Answer]:
    """The same, with each node as it has run; the answer is the last. Queues at once."""
    return _asked(request, stream=True)


def look(collection: str, tenant: str, thread_id: str, *, forget: bool = False) -> Conversation:
    """A conversation, deleted with `forget`; ThreadNotFound, and errors as of `ask`."""
    wait = get_settings().search.timeout_seconds
    reply_to, until = replies.new_address(), time.time() + wait
    arguments = (collection, tenant, thread_id, reply_to)
    _queue(conversation, arguments, wait, forget=forget)
    for reply in replies.receive(reply_to, until):
        return Conversation(**reply["ok"])
    raise _late()


def _asked(request: AnswerRequest, *, stream: bool) -> Iterator[NodeMessage | Answer]:
    settings = get_settings().agent
    if (waiting := backlog(ANSWER)) >= settings.max_backlog:
        raise Overloaded(f"{waiting} questions are waiting")
    wait = settings.timeout_seconds
    reply_to, until = replies.new_address(), time.time() + wait
    _queue(answer, (request.model_dump(mode="json"), reply_to, until), wait, stream=stream)
    return _replies(reply_to, until)


def _replies(reply_to: str, until: float) -> Iterator[NodeMessage | Answer]:
    for reply in replies.receive(reply_to, until):
        if NODE in reply:
            yield NodeMessage(**reply[NODE])
        else:
            yield Answer(**reply["ok"])
            return
    raise _late()


def _queue(task: Any, arguments: tuple[Any, ...], expires: float, **options: bool) -> None:
    try:
        task.apply_async(arguments, options, queue=ANSWER, expires=expires)
    except OperationalError as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error


def _told(turn: "Turn") -> dict[str, Any]:
    return {**turn, "understood": Standing(turn["base"], tuple(turn["tails"])).text}


def _late() -> AnswerTimeout:
    return AnswerTimeout(f"no answer within {get_settings().agent.timeout_seconds:g} s")


@contextmanager
def _turn(request: AnswerRequest, deadline: float) -> Iterator[None]:
    """One question of a conversation at a time: the next leans on this one's answer."""
    if request.thread_id is None:
        yield
        return
    place = ":".join((request.collection, request.tenant or "", request.thread_id))
    wait = max(0.0, deadline - time.time())
    try:
        with broker().lock(f"turn:{place}", timeout=wait + 1, blocking_timeout=wait):
            yield
    except LockError as error:
        raise Conflict(
            f"conversation {request.thread_id!r} is busy with another question",
            hint="Wait for that answer, then ask again.",
        ) from error


def _silent(report: NodeReport) -> None:
    pass


def _make_threads() -> "Threads":
    from agent.threads import Threads, make_saver

    settings = get_settings()
    return Threads(make_saver(settings.ledger_url, settings.data_dir), ledger().conversations)


def _make_agent() -> "Agent":
    from agent.agent import Agent

    settings = get_settings()
    model, spans = make_confirmer(settings), make_spans(settings)
    if spans is not None:
        atexit.register(spans.close)

    def budgeted(collection: str, tenant: str) -> Budgeted | None:
        if model is None:
            return None
        return Budgeted(
            model,
            ledger().model_usage,
            settings.llm,
            collection,
            tenant,
            told=model_called,
            spans=spans,
        )

    return Agent(settings, engine(), learning(), threads(), budgeted, spans)


threads = PerProcess(_make_threads).get
agent = PerProcess(_make_agent).get
