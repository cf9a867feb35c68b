"""Logs, counts and traces the tasks of every process, by the signals of Celery.

The sender of a message writes the trace context (W3C `traceparent`) and the time into its headers.
The worker counts how long the message waited and how the task ended; within a trace it records a
span of the wait and a span of the task, in which the task's own spans are.
"""

import logging
import threading
import time
from contextlib import ExitStack
from typing import Any

from celery import Celery, Task, current_app
from celery.signals import (
    before_task_publish,
    celeryd_init,
    setup_logging,
    task_failure,
    task_postrun,
    task_prerun,
    worker_process_shutdown,
)

from callslip import logs, trace_context
from callslip.config.settings import Settings
from callslip.tasks.composition import Context, current
from callslip.tasks.queues import Role
from callslip.tasks.shared.metering import QUEUE_TIME, TASKS, named

log = logging.getLogger(__name__)

SENT_AT = "sent_at"
"""The header with the time of sending, Unix time."""

_open = threading.local()
"""The spans of the task that this thread runs, to be closed at its end."""


def set_up_log(settings: Settings, part: str) -> None:
    """Set up the log of this process, according to the settings of its part."""
    chosen = settings.log
    logs.set_up(part, chosen.level_of(part), chosen.format, chosen.file)


def watch(app: Celery, role: Role) -> None:
    """Name the part that a worker of this app is in its log."""
    app.callslip_role = role


@celeryd_init.connect
def _set_up_log(**_: Any) -> None:
    """Set up the log of a worker before Celery writes its first warning."""
    set_up_log(current().settings, current_app.callslip_role)


@setup_logging.connect
def _leave_it(**_: Any) -> None:
    """Celery sets up no log if this signal has a receiver."""


@before_task_publish.connect
def _sending(headers: dict[str, Any] | None = None, **_: Any) -> None:
    if headers is not None:
        headers[SENT_AT] = time.time()
        headers[trace_context.HEADER] = trace_context.current()


@task_prerun.connect
def _begins(task: Task, **_: Any) -> None:
    context, stack = current(), ExitStack()
    sent_at = getattr(task.request, SENT_AT, None)
    if isinstance(sent_at, float):
        waited = max(0.0, time.time() - sent_at)
        context.meter.took(named(QUEUE_TIME, _queue(task)), waited)
    header = trace_context.valid(getattr(task.request, trace_context.HEADER, None))
    stack.enter_context(trace_context.within(header))
    if header is not None and context.spans is not None:
        stack.enter_context(_traced(context, task, sent_at))
    _open.stack = stack


@task_postrun.connect
def _ended(task: Task, state: str | None = None, **_: Any) -> None:
    stack, _open.stack = getattr(_open, "stack", None), None
    if stack is not None:
        stack.close()
    outcome = "failed" if state == "FAILURE" else "ok"
    current().meter.add(named(TASKS, _queue(task), outcome))


@task_failure.connect
def _failed(sender: Task, task_id: str, exception: Exception, **_: Any) -> None:
    logs.event(
        log,
        "task",
        logging.ERROR,
        error=exception,
        task=sender.name,
        task_id=task_id,
        outcome="failed",
        reason=type(exception).__name__,
    )


@worker_process_shutdown.connect
def _send_the_rest(**_: Any) -> None:
    """Send what a process of the pool has counted and traced; it ends without `atexit`."""
    context = current()
    context.meter.close()
    if context.spans is not None:
        context.spans.close()


def _traced(context: Context, task: Task, sent_at: object) -> ExitStack:
    """Record the wait of the message; open the span of its task."""
    stack, spans, queue = ExitStack(), context.spans, _queue(task)
    assert spans is not None  # noqa: S101 - for mypy
    attributes = {
        "messaging.system": "celery",
        "messaging.destination.name": queue,
        "messaging.message.id": str(task.request.id),
    }
    if isinstance(sent_at, float):
        parent = spans.waited(f"queue {queue}", attributes, sent_at)
        stack.enter_context(trace_context.within(parent))
    stack.enter_context(spans.span(task.name, attributes))
    return stack


def _queue(task: Task) -> str:
    """The queue of the task that runs; empty if the task was called without a queue."""
    return str((task.request.delivery_info or {}).get("routing_key") or "")
