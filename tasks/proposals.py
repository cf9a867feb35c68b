"""Runs that look for better weights and further facets of each collection, one after the other.

The ledger says what is due, so that a broker that lost its data delays and repeats nothing. A run
is a command of its own (`callslip proposals run`): its memory goes with it, and its time is
bounded. A run whose worker died is begun again when its lease is over.
"""

import logging
from collections.abc import Iterator

from celery import shared_task
from redis.lock import Lock

from callslip.errors import CallslipError, InternalError
from callslip.retrieval.tuning.proposing import Proposed, better_ranking, further_facets
from callslip.stores.ledger import CollectionRecord
from callslip.tasks.composition import Context, current
from callslip.tasks.shared.children import run
from callslip.tasks.shared.locks import alone
from callslip.vocabulary import ProposalKind, ProposalState

log = logging.getLogger(__name__)

LOOK_SECONDS = 900.0
"""Seconds between two checks whether a run is due, because a machine may be off for days."""

SPARE_SECONDS = 60.0
"""Seconds after the longest time of a run until its lease is over."""

_DAY_SECONDS = 86_400.0


@shared_task(name="maintenance.propose")
def propose() -> None:
    """Do every run that is due, one at a time."""
    context = current()
    with alone(context.broker, "proposals") as lock:
        if lock is None:
            return
        try:
            for kind, record in _due(context):
                _run(context, kind, record.name, lock)
        except CallslipError as error:
            log.warning("proposals put off: %s", error.detail)


def look(context: Context, kind: ProposalKind, collection: str) -> ProposalState | None:
    """Do one run in this process and record what it proposes; None if it was given up.

    Raises CollectionNotFound, Conflict while another process has the run, and what the run raises,
    which the ledger then has as the reason of its failure.
    """
    ledger = context.ledger
    record = ledger.collections.get(collection)
    tenant = _largest_tenant(context, record) if kind == "facets" else ""
    lease_seconds = context.settings.proposals.run_minutes * 60 + SPARE_SECONDS
    begun = ledger.proposals.begin(kind, collection, tenant, lease_seconds)
    if begun is None:
        return None
    try:
        result = _looked(context, kind, record, tenant)
    except CallslipError as error:
        ledger.proposals.fail(kind, collection, f"{error.slug}: {error.detail}")
        raise
    except Exception as error:
        internal = InternalError(f"unexpected {type(error).__name__}")
        ledger.proposals.fail(kind, collection, f"{internal.slug}: {internal.detail}")
        raise
    return ledger.proposals.end(begun, result.figures, result.changes, result.before, result.reason)


def _due(context: Context) -> Iterator[tuple[ProposalKind, CollectionRecord]]:
    settings, ledger = context.settings.proposals, context.ledger
    days: tuple[tuple[ProposalKind, float], ...] = (
        ("ranking", settings.tune_days),
        ("facets", settings.discover_days if context.settings.embedder.kind != "none" else 0),
    )
    for kind, every in days:
        for record, live in ledger.collections.all() if every else ():
            if live and ledger.proposals.is_due(kind, record.name, every * _DAY_SECONDS):
                yield kind, record


def _run(context: Context, kind: ProposalKind, collection: str, lock: Lock) -> None:
    """Do a run in a process of its own; one that takes too long has failed."""
    minutes = context.settings.proposals.run_minutes
    command = ("proposals", "run", kind, "-c", collection)
    try:
        run(command, lock, seconds=minutes * 60)
    except TimeoutError:
        reason = f"time-out: it took longer than proposals.run_minutes ({minutes:g})"
        log.warning("proposals of %s for %s: %s", kind, collection, reason)
        context.ledger.proposals.fail(kind, collection, reason)


def _looked(
    context: Context, kind: ProposalKind, record: CollectionRecord, tenant: str
) -> Proposed:
    if kind == "ranking":
        return better_ranking(context.ledger, context.settings, record)
    store = context.store_of(record.store)
    return further_facets(context.ledger, context.settings, store, record, tenant)


def _largest_tenant(context: Context, record: CollectionRecord) -> str:
    """The tenant with the most live documents, which stands for all; empty without tenants."""
    if not record.schema.tenants:
        return ""
    return context.ledger.tenants.largest(record.name) or ""
