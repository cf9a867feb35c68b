"""Probes every store, notices faults and restarts, and audits what a store may have forgotten.

A store that ran out of disk space may acknowledge chunks and have lost them at its next start. So
what went live since the last start of a store counts as durable only once it was audited after the
next start. An audit repairs what it finds.
"""

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from celery import shared_task

from callslip.config.settings import MEGABYTE
from callslip.errors import CallslipError, KeywordsDown, StartError, StoreReadOnly
from callslip.stores.disk import check_space, free_bytes
from callslip.tasks.audit import audit_and_repair
from callslip.tasks.composition import Context, current
from callslip.tasks.queues import MAINTENANCE
from callslip.tasks.shared import store_health
from callslip.tasks.shared.locks import alone
from callslip.tasks.shared.store_health import Health
from callslip.workers.supervision import runfile

log = logging.getLogger(__name__)

RESTART_AFTER = 3
"""Failed probes in a row after which `callslip up` restarts the store."""

PROBE_SECONDS = 120.0
"""Seconds after which the lock of a probe expires; the clients' time limits are shorter."""

AUDIT_SECONDS = 3600.0

FULL_SHARE = 0.1
"""The share of `ingest.min_free_mb` below which a store may have met a full disk unseen."""

DURABLE, DOUBTS = "store-durable", "store-doubts"
"""The broker's hashes: by kind, the time until which all is durable, and the doubt, as JSON."""


@dataclass(frozen=True)
class Doubt:
    """What has to be audited. Times are UTC seconds since 1970.

    `noticed_at` is when the end of a fault or a restart was noticed, `since` when the store was
    last well before. If the store was restarted, what went live before `durable_until` is durable
    after the audit; else it is 0. `put_off` are the collections that the last audit left to the
    next one; None before the first.
    """

    noticed_at: float
    since: float
    durable_until: float
    put_off: Sequence[str] | None = None


@shared_task(name="maintenance.check_stores")
def check_stores() -> None:
    """Queue a probe of each store; a store that hangs delays no other."""
    context = current()
    for kind in context.stores():
        check_store.apply_async(
            (kind,), queue=MAINTENANCE, expires=context.settings.maintenance.probe_seconds
        )


@shared_task(name="maintenance.check_store")
def check_store(kind: str) -> None:
    """Probe one store and record the result; queue an audit once a fault is over."""
    context = current()
    broker = context.broker
    with alone(broker, f"probe:{kind}", PROBE_SECONDS) as lock:
        if lock is None:
            return
        before = store_health.read(broker, kind)
        health = probe(context, kind, before)
        if reason := restart_reason(health, disk_is_short=is_short(context)):
            log.warning("store %s is to be restarted: %s", kind, reason)
            store_health.request_restart(broker, kind, reason)
            health = replace(health, failures=0, was_full=False)
        store_health.write(broker, kind, health)
        if doubt := doubt_of(before, health):
            broker.hset(DOUBTS, kind, json.dumps(doubt.__dict__))
    if not health.reason and broker.hexists(DOUBTS, kind) and not context.local:
        audit_doubts.apply_async((kind,), queue=MAINTENANCE)


def probe(context: Context, kind: str, before: Health | None) -> Health:
    """The health of a store after a probe. `before` is the health after the last one."""
    now, started = time.time(), started_at(context.settings.data_dir, kind)
    before = before or Health(now)
    full, reason, counts = is_short(context), "", True
    try:
        context.store_of(kind).probe()
    except KeywordsDown as error:  # a restart of the store would not help
        reason, counts = error.detail, False
    except StoreReadOnly as error:
        full, reason = True, error.detail
    except CallslipError as error:
        reason = error.detail
    restarted = started != before.started
    return Health(
        checked_at=now,
        reason=reason,
        well_at=(before.well_at or now) if reason else now,
        failures=(0 if restarted else before.failures) + counts if reason else 0,
        was_full=full or (before.was_full and not restarted),
        started=started,
    )


def is_short(context: Context) -> bool:
    """Whether the disk has so little free space that a store may have run out of it."""
    settings = context.settings
    return free_bytes(settings.data_dir) < settings.ingest.min_free_mb * MEGABYTE * FULL_SHARE


def restart_reason(health: Health, *, disk_is_short: bool) -> str:
    """Why the store is to be restarted; empty if it is not.

    A store with a full disk is restarted when there is room again: it may start only then. A store
    that goes on failing when there is room is restarted like any other.
    """
    if health.was_full and not health.reason:
        return "its disk was full: it may forget what it acknowledged"
    if health.failures >= RESTART_AFTER and not (health.was_full and disk_is_short):
        return f"{health.failures} probes in a row failed: {health.reason}"
    return ""


def doubt_of(before: Health | None, health: Health) -> Doubt | None:
    """What to audit after this probe; None if it shows neither the end of a fault nor a restart."""
    if health.reason:
        return None
    if before is None:
        return Doubt(health.checked_at, health.checked_at, health.started)
    if health.started != before.started:
        return Doubt(health.checked_at, before.well_at, health.started)
    if before.reason:  # a store on another machine may have been restarted meanwhile
        return Doubt(health.checked_at, before.well_at, 0.0 if health.started else before.well_at)
    return None


@shared_task(name="maintenance.audit_doubts")
def audit_doubts(kind: str) -> None:
    """Audit and repair the collections of a store in which something went live that is in doubt."""
    context = current()
    broker = context.broker
    with alone(broker, f"doubts:{kind}", AUDIT_SECONDS) as lock:
        value = broker.hget(DOUBTS, kind) if lock is not None else None
        if not value:
            return
        doubt, durable = Doubt(**json.loads(value)), float(broker.hget(DURABLE, kind) or 0)
        try:
            check_space(context.settings)  # a repair writes
            names = doubtful(context, kind, durable)
            if doubt.put_off is not None:
                names = [name for name in names if name in doubt.put_off]
            results = {name: audit_and_repair(context, name) for name in names}
        except CallslipError as error:
            log.warning("audit of store %s after a fault put off: %s", kind, error.detail)
            return
        same = broker.hget(DOUBTS, kind) == value
        if put_off := [name for name, repaired in results.items() if repaired is None]:
            if same:  # the next probe queues it again
                rest = replace(doubt, put_off=put_off)
                broker.hset(DOUBTS, kind, json.dumps(rest.__dict__))
            return
        broker.hset(DURABLE, kind, max(durable, doubt.durable_until))
        if same:
            broker.hdel(DOUBTS, kind)
        set_right = sum(filter(None, results.values()))
        log.log(
            logging.WARNING if set_right else logging.INFO,
            "store %s was audited after a fault or a restart: %d collections, %d objects set right,"
            " %.1f s after it was last well",
            *(kind, len(names), set_right, time.time() - doubt.since),
        )


def doubtful(context: Context, kind: str, durable: float) -> list[str]:
    """The collections of a store to audit, if what went live before `durable` is durable.

    Those that the store lacks altogether are among them, however old. If `durable` lies ahead, the
    clock was set back, and times say nothing: then every collection in which something is live.
    """
    ledger = context.ledger
    names = ledger.inventory.published_since(kind, 0.0 if durable > time.time() else durable)
    there = context.store_of(kind).collections()
    lacking = {
        record.name
        for record, _ in ledger.collections.all()
        if record.store == kind and not record.attached and record.name not in there
    }
    return sorted(lacking.union(names))


def started_at(data_dir: Path, kind: str) -> float:
    """When the process of a store that `callslip up` runs here was started; 0 if none does."""
    try:
        run = runfile.read(data_dir)
    except StartError:
        return 0.0
    part = run.parts.get(kind) if run else None
    return part.started if part else 0.0
