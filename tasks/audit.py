"""The periodic audit: every store against the ledger, and repairs; counts only are logged."""

import logging
from collections import Counter
from collections.abc import Sequence

from celery import shared_task

from callslip.errors import CallslipError
from config import get_settings
from ingestion.repair import Repairs, repair
from stores.audit import Finding, look, places
from stores.ledger import Step
from stores.strays import look_aside, look_at_files
from tasks import ingest
from tasks.process import blobs, broker, embedder, ledger, stores
from tasks.queues import MAINTENANCE

log = logging.getLogger(__name__)

LOOK_SECONDS = 900.0
"""How often it is looked whether an audit is due: a machine may not run for a day at a time."""

DONE = "audit:done"
"""The broker's key that says so until the next audit is due; two schedulers start one audit."""


@shared_task(name="maintenance.audit")
def audit() -> None:
    """Start an audit once in `maintenance.audit_hours`: a message for each collection.

    So sweeps come in between, for which the same worker is responsible.
    """
    hours = get_settings().maintenance.audit_hours
    if not hours or not broker().set(DONE, 1, nx=True, px=int(hours * 3_600_000)):
        return
    for record, _ in ledger().collections.all():
        audit_collection.apply_async((record.name,), queue=MAINTENANCE)
    audit_strays.apply_async(queue=MAINTENANCE)


@shared_task(name="maintenance.audit_collection")
def audit_collection(name: str) -> None:
    """Compare one collection with its store, and repair; the ingest workers write what lacks."""
    try:
        if ledger().inventory.moving(name):
            log.warning("audit of %s put off: a move or an import writes, or was broken off", name)
            return
        for place in places(ledger(), stores(), name):
            seen = look(ledger(), place)
            log.info(
                "audit of %s in %s: %d documents, %d chunks, held %s, %d skipped",
                *(seen.collection, seen.store, seen.documents, seen.chunks, dict(seen.held)),
                seen.skipped,
            )
            _repair(seen.findings)
    except CallslipError as error:
        log.warning("audit of %s put off: %s", name, error.detail)


@shared_task(name="maintenance.audit_strays")
def audit_strays() -> None:
    """Look for collections in wrong stores and for files of no document, and remove them."""
    try:
        _repair([*look_aside(ledger(), stores()), *look_at_files(ledger(), blobs())])
    except CallslipError as error:
        log.warning("audit of stray objects put off: %s", error.detail)


def _repair(findings: Sequence[Finding]) -> None:
    if not findings:
        return
    done: Counter[str] = Counter()
    left: Counter[tuple[str, str]] = Counter()
    use = Repairs(ledger(), stores(), blobs(), embedder().model, _send)
    for repaired in repair(findings, use):
        found = repaired.finding
        what = f"{found.kind} of {found.collection or found.store}"
        if repaired.left:
            left[what, repaired.left] += len(found.ids)
        else:
            done[what] += len(found.ids)
    for what, count in done.items():
        log.warning("the audit set right: %s, objects: %d", what, count)
    for (what, reason), count in left.items():
        log.error("the audit left: %s, objects: %d: %s", what, count, reason)


def _send(document_id: str, _version: int, _first: Step) -> None:
    ingest.send_next(document_id)  # where the broker is down, the sweep will
