"""Rebuilding facet-value vectors: each collection, or tenant of one, by itself."""

import logging
import uuid
from collections.abc import Sequence

from celery import shared_task
from kombu.exceptions import OperationalError

from callslip.errors import BrokerDown, CallslipError
from config import get_settings
from retrieval.facet_vectors import FacetBuilder
from stores.ledger.facet_values import FacetPlace
from tasks.maintenance import alone
from tasks.process import broker, embedder, ledger, store
from tasks.queues import MAINTENANCE

log = logging.getLogger(__name__)

LOOK_SECONDS = 300.0
"""How often it is looked whether a rebuild is due: a machine may not run for hours at a time."""

DONE = "facets:done"
"""The broker's key that says so until the next rebuild is due; two schedulers start one."""

LOCK_SECONDS = 300.0
"""For one batch of values, also with a slow embedder."""

AGAIN_SECONDS = 2.0


@shared_task(name="maintenance.rebuild_facets")
def rebuild_facets() -> None:
    """Once in `facets.rebuild_hours` send a rebuild of each collection and tenant."""
    hours = get_settings().facets.rebuild_hours
    if not hours or not broker().set(DONE, 1, nx=True, px=int(hours * 3_600_000)):
        return
    names = get_settings().facets.facets
    for record, live in ledger().collections.all():
        if not live or record.embedder != embedder().model:
            continue
        tenants = ledger().tenants.all(record.name) if record.schema.tenants else [""]
        for tenant in tenants:
            ledger().facet_values.keep_only(FacetPlace(record.name, tenant), names)
            rebuild_facets_of.apply_async((record.name, tenant, names), queue=MAINTENANCE)


@shared_task(name="maintenance.rebuild_facets_of")
def rebuild_facets_of(collection: str, tenant: str, facets: Sequence[str], run: str = "") -> None:
    """Rebuild facets of one place. What somebody asked for waits for a rebuild that is at work."""
    with alone(f"facets:{collection}:{tenant}", LOCK_SECONDS) as lock:
        if lock is None:
            if run:
                rebuild_facets_of.apply_async(
                    (collection, tenant, facets, run), queue=MAINTENANCE, countdown=AGAIN_SECONDS
                )
            return
        try:
            record = ledger().collections.get(collection)
            done = FacetBuilder(
                ledger(), store(record.store), embedder(), get_settings().facets.max_values
            ).rebuild(record, tenant, facets, run=run, told=lock.reacquire)
        except CallslipError as error:
            log.warning("facets of %s put off: %s", collection, error.detail)
            return
    for facet, counts in done.items():
        log.info("facet %s of %s: %s", facet, collection, counts)


def ask(collection: str, tenant: str, facets: Sequence[str]) -> str:
    """Queue a rebuild; the id of the run, by which its builds are known. BrokerDown."""
    run = uuid.uuid4().hex
    try:
        rebuild_facets_of.apply_async((collection, tenant, list(facets), run), queue=MAINTENANCE)
    except OperationalError as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error
    return run
