"""Sends the message of a task by one command, for requests that wait for the task.

`Task.apply_async` takes a millisecond of processor time beside that command: for routes,
declarations, a pool of producers and a result that nobody reads.
"""

import uuid
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, NamedTuple

import redis
from celery import Task
from celery.signals import before_task_publish
from kombu.utils import json

from callslip.tasks.shared.broker import as_broker_down


class Sent(NamedTuple):
    """A message, and the number of messages in its queue, itself included."""

    queue: str
    message: str
    waiting: int


def send(
    broker: redis.Redis, task: Task, arguments: Sequence[Any], *, queue: str, expires: float
) -> Sent:
    """Put a message for the task at the end of a queue.

    A worker drops the message after `expires` seconds. The message is the one that `apply_async`
    sends (https://docs.celeryq.dev/en/stable/internals/protocol.html, version 2), in kombu's
    envelope for Redis. Raises BrokerDown if the broker does not answer.
    """
    made = task.app.amqp.as_task_v2(
        str(uuid.uuid4()), task.name, arguments, expires=expires, argsrepr="", kwargsrepr="{}"
    )
    made.headers["ignore_result"] = True
    before_task_publish.send(sender=task.name, headers=made.headers)
    message = _as_json(
        {
            "body": b64encode(_as_json(made.body).encode()).decode(),
            "content-encoding": "utf-8",
            "content-type": "application/json",
            "headers": made.headers,
            "properties": {
                **made.properties,
                "delivery_mode": 2,
                "delivery_info": {"exchange": "", "routing_key": queue},
                "priority": 0,
                "body_encoding": "base64",
                "delivery_tag": str(uuid.uuid4()),
            },
        }
    )
    with as_broker_down():
        return Sent(queue, message, int(broker.lpush(queue, message)))


def take_back(broker: redis.Redis, sent: Sent) -> bool:
    """Remove a message; return False if a worker has it already.

    Raises BrokerDown if the broker does not answer.
    """
    with as_broker_down():
        return bool(broker.lrem(sent.queue, 1, sent.message))


def _as_json(value: object) -> str:
    """JSON in which kombu recognizes times."""
    return str(json.dumps(value))  # type: ignore[no-untyped-call]  # kombu has no types
