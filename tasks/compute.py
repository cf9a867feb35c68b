"""Jobs of the adapters as a task: the API queues a job and waits, and a worker computes it.

The request waits in the broker under a key that expires, so that the message stays short. The
reply arrives over a list, as the reply to a search does.
"""

import json
import logging
import time
from typing import Any

import redis
from celery import shared_task
from kombu.exceptions import OperationalError

from callslip.errors import BrokerDown, WorkTimeout
from callslip.readers import Reader, as_json
from callslip.tasks.adapters import job_of
from callslip.tasks.composition import Context, current
from callslip.tasks.queues import ADAPTERS
from callslip.tasks.shared import replies

log = logging.getLogger(__name__)

WAIT_SECONDS = 600.0
"""Seconds to wait for a reply: embedding a few hundred long texts takes minutes."""


@shared_task(name="adapters.compute")
def compute(
    job: str,
    request_at: str,
    reply_to: str,
    deadline: float,
    reader: dict[str, Any] | None = None,
) -> None:
    """Run a job, and push its result to the list `reply_to`, unless its caller stopped waiting.

    The job sees what the `reader` may read; without one, everything.
    """
    context = current().for_reader(Reader.of_json(reader))
    request = context.broker.getdel(request_at)
    if request is None or time.time() > deadline:
        return
    try:
        reply: replies.Reply = {"ok": job_of(job)(context, json.loads(request))}
    except Exception as error:
        reply = replies.failed(error, f"job {job}")
    replies.send(context.broker, reply_to, reply)


def run(context: Context, job: str, request: Any, *, seconds: float = WAIT_SECONDS) -> Any:
    """Queue a job of an adapter with a JSON request, and return the job's result.

    With a local context the job runs in this process.

    Raises the error of the job, Overloaded if no worker reads the queue, WorkTimeout if no reply
    arrives in time, BrokerDown if the broker does not answer.
    """
    if context.local:
        return job_of(job)(context, request)
    broker, until = context.broker, time.time() + seconds
    context.consumers.check(ADAPTERS)
    reply_to = replies.new_address()
    request_at = f"request:{reply_to}"
    try:
        broker.set(request_at, json.dumps(request), ex=int(seconds) + 1)
        arguments = (job, request_at, reply_to, until, as_json(context.reader))
        compute.apply_async(arguments, queue=ADAPTERS, expires=seconds)
    except (OperationalError, redis.RedisError) as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error
    for reply in replies.receive(broker, reply_to, until):
        return reply["ok"]
    raise WorkTimeout(f"no worker answered within {seconds:g} s")
