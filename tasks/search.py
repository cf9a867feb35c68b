"""A search as queued work, and how its caller waits for the reply.

The reply does not use Celery's result backend (docs/architecture.md has the measurement): the task
pushes it to a list that only this request knows and that expires; the caller pops with a deadline.
"""

import json
import logging
import time
import uuid
from typing import Any

import redis
from celery import shared_task
from kombu.exceptions import OperationalError

from callslip.errors import (
    BY_SLUG,
    BrokerDown,
    CallslipError,
    InternalError,
    Overloaded,
    PermanentError,
    SearchTimeout,
)
from config import get_settings
from retrieval.messages import SearchRequest, SearchResponse
from retrieval.trace import Trace
from tasks.metering import SEARCH_TIME, SEARCHES, STAGE, TRACES_DROPPED, meter, named
from tasks.process import backlog, broker, engine
from tasks.queues import SEARCH
from tasks.recording import recorder

log = logging.getLogger(__name__)

REPLY_SECONDS = 30
"""How long a reply that nobody fetched is kept."""


@shared_task(name="search.query")
def query(request: dict[str, Any], reply_to: str, deadline: float) -> None:
    """Answer a search into the list `reply_to`, unless its caller has stopped waiting."""
    if time.time() > deadline:
        meter().add(named(SEARCHES, "late"))
        return
    trace: Trace | None = None
    started = time.perf_counter()
    try:
        response, trace = engine().traced(SearchRequest(**request))
        reply: dict[str, Any] = {"ok": response.model_dump(mode="json")}
        outcome = "partial" if response.partial else "answered"
    except CallslipError as error:
        reply = {"error": [error.slug, error.detail, error.advice]}
        outcome = "refused" if isinstance(error, PermanentError) else "failed"
    except Exception as error:
        log.error(
            "search failed: %s", type(error).__name__, exc_info=not isinstance(error, OSError)
        )
        internal = InternalError(f"the search failed: {type(error).__name__}")
        reply = {"error": [internal.slug, internal.detail, internal.advice]}
        outcome = "failed"
    took = time.perf_counter() - started
    pipeline = broker().pipeline(transaction=False)
    pipeline.lpush(reply_to, json.dumps(reply))
    pipeline.expire(reply_to, REPLY_SECONDS)
    pipeline.execute()
    if trace is not None and not recorder().put(trace):
        meter().add(TRACES_DROPPED)
    _count(outcome, took, trace)


def _count(outcome: str, seconds: float, trace: Trace | None) -> None:
    """Count a search that ended so, after so long, with its stages where it came to an answer."""
    its = meter()
    its.add(named(SEARCHES, outcome))
    its.took(SEARCH_TIME, seconds)
    if trace is not None:
        for stage, milliseconds in trace.timings.items():
            its.took(named(STAGE, stage), milliseconds / 1000)
        its.caches(engine().caches)


def ask(request: SearchRequest) -> SearchResponse:
    """Queue a search and wait for its reply.

    Raises what the search raised, Overloaded when too many wait already, SearchTimeout when no
    reply came in time, BrokerDown when the broker does not answer.
    """
    settings = get_settings().search
    if (waiting := backlog(SEARCH)) >= settings.max_backlog:
        raise Overloaded(f"{waiting} searches are waiting")
    reply_to = f"reply:{uuid.uuid4().hex}"
    wait = settings.timeout_seconds
    try:
        query.apply_async(
            (request.model_dump(), reply_to, time.time() + wait), queue=SEARCH, expires=wait
        )
        popped = broker().brpop([reply_to], timeout=wait)
    except (OperationalError, redis.RedisError) as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error
    if popped is None:
        raise SearchTimeout(f"no answer within {wait:g} s")
    reply = json.loads(popped[1])
    if "ok" in reply:
        return SearchResponse(**reply["ok"])
    slug, detail, advice = reply["error"]
    raise BY_SLUG[slug](detail, hint=advice)
