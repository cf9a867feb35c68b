"""The Celery app. The reasons for each setting are in docs/architecture.md."""

import gc
from typing import Any

from celery import Celery
from celery.app.task import Task
from celery.signals import worker_init
from kombu.entity import Exchange, Queue

from callslip.config.settings import Settings
from callslip.tasks import (
    answer,
    audit,
    backup,
    compute,
    facets,
    ingest,
    maintenance,
    memory,
    proposals,
    search,
    sources,
    webhooks,
)
from callslip.tasks.composition import Context, hand_to
from callslip.tasks.queues import ALL, ANSWER, INGEST, MAINTENANCE, SEARCH, Role
from callslip.tasks.shared import transport
from callslip.tasks.shared.broker import call_seconds, celery_options, celery_url
from callslip.workers import observing, store_checks
from callslip.workers.stopping import end_soon_when_stopped

VISIBILITY_SECONDS = 7200
"""Seconds. All processes have the same visibility timeout, as the shortest on a broker applies.

The sweep sends lost work again.
"""

MAINTAIN_EVERY_SECONDS = 20.0

TRIM_EVERY_SECONDS = 3600.0

CANARY_EVERY_SECONDS = 5.0
"""Documents wait in the other queues at any time, and the scheduler's own messages in its queue."""

TASK_MODULES = (
    answer,
    audit,
    backup,
    compute,
    facets,
    ingest,
    maintenance,
    memory,
    proposals,
    search,
    sources,
    store_checks,
    webhooks,
)
"""The modules of all tasks; their import registers the tasks with every app that is made here."""


def make_app(role: Role, context: Context) -> Celery:
    """Make the Celery app of one kind of process, whose tasks use the context.

    The app becomes the current app. Raises SettingsError if the settings name no broker.
    """
    settings = context.settings
    url = celery_url(settings)
    app = Celery("callslip", broker=url)
    hand_to(app, context)
    app.conf.update(_COMMON)
    app.conf.update(_BY_ROLE[role])
    if url.startswith("redis://"):  # kombu has transports of its own for TLS, Sentinels and sockets
        app.conf.broker_transport = transport.NAME
    app.conf.broker_transport_options = {
        **_TRANSPORT,
        **_TRANSPORT_BY_ROLE.get(role, {}),
        **celery_options(settings),
    }
    if role == "api":  # its requests have deadlines; workers wait for messages
        seconds = call_seconds(settings)
        app.conf.broker_transport_options |= {
            "socket_timeout": seconds,
            "socket_connect_timeout": seconds,
        }
    app.conf.beat_schedule = _schedule(settings)
    if role != "api":
        end_soon_when_stopped()
    app.set_default()
    observing.watch(app, role)
    _pool = app.producer_pool  # made before the threads: two that make it at once resize it in use
    return app


def _schedule(settings: Settings) -> dict[str, dict[str, Any]]:
    """The entries of `beat_schedule` by name.

    A message that waits for longer than the interval of its task expires, because the next one
    replaces it; a canary may wait for three intervals.
    """
    probe_seconds = settings.maintenance.probe_seconds
    entries = {
        "sweep": _entry(maintenance.sweep, settings.ingest.sweep_seconds),
        "maintain": _entry(maintenance.maintain, MAINTAIN_EVERY_SECONDS),
        "webhooks": _entry(webhooks.send, webhooks.SEND_EVERY_SECONDS),
        "look_at_sources": _entry(sources.look_at_sources, sources.LOOK_SECONDS),
        "trim": _entry(maintenance.trim, TRIM_EVERY_SECONDS),
        "empty_logs": _entry(maintenance.empty_sqlite_logs, maintenance.EMPTY_LOGS_SECONDS),
        "memory": _entry(memory.maintain_memory, memory.EVERY_SECONDS),
        "conversations": _entry(answer.trim, answer.TRIM_EVERY_SECONDS, ANSWER),
        "audit": _entry(audit.audit, audit.LOOK_SECONDS),
        "backup": _entry(backup.back_up, backup.LOOK_SECONDS),
        "propose": _entry(proposals.propose, proposals.LOOK_SECONDS),
        "check_stores": _entry(store_checks.check_stores, probe_seconds),
        "rebuild_facets": _entry(facets.rebuild_facets, facets.LOOK_SECONDS),
    }
    for queue in (SEARCH, ANSWER):
        canary = _entry(maintenance.canary, CANARY_EVERY_SECONDS, queue)
        canary["options"]["expires"] = 3 * CANARY_EVERY_SECONDS
        entries[f"canary_{queue}"] = canary
    return entries


def _entry(task: Task, seconds: float, queue: str = MAINTENANCE) -> dict[str, Any]:
    return {
        "task": task.name,
        "schedule": seconds,
        "options": {"queue": queue, "expires": seconds},
    }


@worker_init.connect
def _freeze(**_: Any) -> None:
    """Exempt from garbage collection what the imports made, before the pool's processes start.

    These objects live as long as the process. A full collection that visits them stops every
    thread for 30 ms, copies their pages into each process of the pool, and delays the end.
    """
    gc.freeze()


def _queue(name: str) -> Queue:
    """A queue with a separate exchange and routing key, so that no message enters two queues."""
    return Queue(name, Exchange(name), routing_key=name)  # type: ignore[no-untyped-call]


_COMMON: dict[str, Any] = {
    "task_queues": [_queue(name) for name in ALL],
    "task_default_queue": INGEST,
    "task_create_missing_queues": False,
    "task_serializer": "json",
    "accept_content": ["json"],
    "task_ignore_result": True,
    "worker_prefetch_multiplier": 1,
    "worker_enable_remote_control": False,
    "worker_send_task_events": False,
    "broker_connection_retry_on_startup": True,
    "worker_cancel_long_running_tasks_on_connection_loss": True,
    "visibility_timeout": VISIBILITY_SECONDS,
    "redis_socket_connect_timeout": 2,
    "redis_socket_keepalive": True,
}

_TRANSPORT: dict[str, Any] = {
    "visibility_timeout": VISIBILITY_SECONDS,
    "unacked_restore_interval": 10,
    "unacked_restore_throttle": 1,
    "socket_connect_timeout": 2,
    "socket_timeout": 30,
    "socket_keepalive": True,
    "health_check_interval": 25,
}

_TRANSPORT_BY_ROLE: dict[Role, dict[str, Any]] = {
    role: {"ack_emulation": False} for role in ("search", "answer")
}

_BY_ROLE: dict[Role, dict[str, Any]] = {
    "api": {"task_publish_retry": False, "broker_pool_limit": 8},
    "ingest": {
        "task_acks_late": True,
        "worker_max_memory_per_child": 3_000_000,
        "worker_proc_alive_timeout": 60,
    },
    "search": {},
    "answer": {},
    "maintenance": {"beat_scheduler": "callslip.workers.beat:SteadyScheduler"},
}
