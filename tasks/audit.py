"""The periodic audit: compares every store with the ledger and repairs it; logs only counts."""

import logging
from collections import Counter
from collections.abc import Sequence
from functools import partial

from celery import shared_task

from callslip.errors import CallslipError
from callslip.ingestion.maintenance.repair import Repairs, repair
from callslip.stores.audit.comparison import Finding, audit_scope, audit_scopes
from callslip.stores.audit.orphans import audit_files, find_misplaced_collections
from callslip.stores.ledger import Step
from callslip.tasks import ingest
from callslip.tasks.composition import Context, current
from callslip.tasks.queues import MAINTENANCE
from callslip.tasks.shared.locks import once_in

log = logging.getLogger(__name__)

LOOK_SECONDS = 900.0
"""Seconds between two checks whether an audit is due, because a machine may be off for a day."""

DONE = "audit:done"
"""The broker's key that exists until the next audit is due."""


@shared_task(name="maintenance.audit")
def audit() -> None:
    """Queue an audit of each collection, once every `maintenance.audit_hours`.

    Each collection has a separate message, so that the worker can run sweeps in between.
    """
    context = current()
    with once_in(context.broker, DONE, context.settings.maintenance.audit_hours) as due:
        if not due:
            return
        for name in [record.name for record, _ in context.ledger.collections.all()]:
            audit_collection.apply_async((name,), queue=MAINTENANCE)
        audit_orphans.apply_async(queue=MAINTENANCE)


@shared_task(name="maintenance.audit_collection")
def audit_collection(name: str) -> None:
    """Compare one collection with its store and repair it; ingest workers write missing chunks."""
    audit_and_repair(current(), name)


def audit_and_repair(context: Context, name: str) -> int | None:
    """Audit a collection and repair it; return the number of objects that were set right.

    Return None if the audit was put off.
    """
    backend, repaired = context.backend, 0
    try:
        if backend.ledger.inventory.moving(name):
            log.warning("audit of %s put off: a move or an import writes, or was broken off", name)
            return None
        for scope in audit_scopes(backend.ledger, backend.stores(), name):
            seen = audit_scope(backend.ledger, scope)
            log.info(
                "audit of %s in %s: %d documents, %d chunks, held %s, %d skipped",
                *(seen.collection, seen.store, seen.documents, seen.chunks, dict(seen.stored)),
                seen.skipped,
            )
            repaired += _repair(context, seen.findings)
    except CallslipError as error:
        log.warning("audit of %s put off: %s", name, error.detail)
        return None
    return repaired


@shared_task(name="maintenance.audit_orphans")
def audit_orphans() -> None:
    """Find and remove collections in wrong stores and files that belong to no document."""
    backend = current().backend
    try:
        findings = find_misplaced_collections(backend.ledger, backend.stores())
        findings = [*findings, *audit_files(backend.ledger, backend.blobs)]
        _repair(current(), findings)
    except CallslipError as error:
        log.warning("audit of orphans put off: %s", error.detail)


def _repair(context: Context, findings: Sequence[Finding]) -> int:
    """Repair what can be repaired, and return the number of objects."""
    if not findings:
        return 0
    done: Counter[str] = Counter()
    left: Counter[tuple[str, str]] = Counter()
    backend = context.backend
    use = Repairs(
        backend.ledger,
        backend.stores(),
        backend.blobs,
        context.embedder.model,
        partial(_send, context),
        [each.model for each in context.further_embedders.values()],
    )
    for repaired in repair(findings, use):
        finding = repaired.finding
        what = f"{finding.kind} of {finding.collection or finding.store}"
        if repaired.left:
            left[what, repaired.left] += len(finding.ids)
        else:
            done[what] += len(finding.ids)
    for what, count in done.items():
        log.warning("the audit set right: %s, objects: %d", what, count)
    for (what, reason), count in left.items():
        log.error("the audit left: %s, objects: %d: %s", what, count, reason)
    return done.total()


def _send(context: Context, document_id: str, _version: int, _first: Step) -> None:
    ingest.send_next(context, document_id)  # if the broker is down, the sweep sends it
