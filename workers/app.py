"""The Celery app. The reasons for each setting are in docs/architecture.md."""

import gc
from typing import Any

from celery import Celery
from celery.signals import worker_init
from kombu.entity import Exchange, Queue

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
    app.conf.beat_schedule = {
        "sweep": {
            "task": maintenance.sweep.name,
            "schedule": settings.ingest.sweep_seconds,
            "options": {"queue": MAINTENANCE, "expires": settings.ingest.sweep_seconds},
        },
        "tend": {
            "task": maintenance.maintain.name,
            "schedule": MAINTAIN_EVERY_SECONDS,
            "options": {"queue": MAINTENANCE, "expires": MAINTAIN_EVERY_SECONDS},
        },
        "webhooks": {
            "task": webhooks.send.name,
            "schedule": webhooks.SEND_EVERY_SECONDS,
            "options": {"queue": MAINTENANCE, "expires": webhooks.SEND_EVERY_SECONDS},
        },
        "look_at_sources": {
            "task": sources.look_at_sources.name,
            "schedule": sources.LOOK_SECONDS,
            "options": {"queue": MAINTENANCE, "expires": sources.LOOK_SECONDS},
        },
        "trim": {
            "task": maintenance.trim.name,
            "schedule": 3600.0,
            "options": {"queue": MAINTENANCE, "expires": 3600.0},
        },
        "empty_logs": {
            "task": maintenance.empty_sqlite_logs.name,
            "schedule": maintenance.EMPTY_LOGS_SECONDS,
            "options": {"queue": MAINTENANCE, "expires": maintenance.EMPTY_LOGS_SECONDS},
        },
        "memory": {
            "task": memory.maintain_memory.name,
            "schedule": memory.EVERY_SECONDS,
            "options": {"queue": MAINTENANCE, "expires": memory.EVERY_SECONDS},
        },
        "conversations": {
            "task": answer.trim.name,
            "schedule": answer.TRIM_EVERY_SECONDS,
            "options": {"queue": ANSWER, "expires": answer.TRIM_EVERY_SECONDS},
        },
        "audit": {
            "task": audit.audit.name,
            "schedule": audit.LOOK_SECONDS,
            "options": {"queue": MAINTENANCE, "expires": audit.LOOK_SECONDS},
        },
        "backup": {
            "task": backup.back_up.name,
            "schedule": backup.LOOK_SECONDS,
            "options": {"queue": MAINTENANCE, "expires": backup.LOOK_SECONDS},
        },
        "propose": {
            "task": proposals.propose.name,
            "schedule": proposals.LOOK_SECONDS,
            "options": {"queue": MAINTENANCE, "expires": proposals.LOOK_SECONDS},
        },
        "check_stores": {
            "task": store_checks.check_stores.name,
            "schedule": settings.maintenance.probe_seconds,
            "options": {"queue": MAINTENANCE, "expires": settings.maintenance.probe_seconds},
        },
        "rebuild_facets": {
            "task": facets.rebuild_facets.name,
            "schedule": facets.LOOK_SECONDS,
            "options": {"queue": MAINTENANCE, "expires": facets.LOOK_SECONDS},
        },
    }
    app.conf.beat_schedule |= {
        f"canary_{queue}": {
            "task": maintenance.canary.name,
            "schedule": CANARY_EVERY_SECONDS,
            "options": {"queue": queue, "expires": 3 * CANARY_EVERY_SECONDS},
        }
        for queue in (SEARCH, ANSWER)
    }
    if role != "api":
        end_soon_when_stopped()
    app.set_default()
    observing.watch(app, role)
    _pool = app.producer_pool  # made before the threads: two that make it at once resize it in use
    return app


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
