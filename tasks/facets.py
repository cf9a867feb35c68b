"""Tasks that rebuild the vectors of facet values, separately for each collection or tenant."""

import logging
import uuid
from collections.abc import Sequence

from celery import shared_task
from kombu.exceptions import OperationalError

from callslip.errors import BrokerDown, CallslipError
from callslip.retrieval.facets.vectors import FacetBuilder
from callslip.stores.ledger.learning.facet_values import FacetScope
from callslip.tasks.composition import Context, current
from callslip.tasks.queues import MAINTENANCE
from callslip.tasks.shared.locks import alone, once_in

log = logging.getLogger(__name__)

LOOK_SECONDS = 300.0
"""Seconds between two checks whether a rebuild is due, because a machine may be off for hours."""

DONE = "facets:done"
"""The broker's key that exists until the next rebuild is due."""

LOCK_SECONDS = 300.0
"""Seconds that one batch of values may take, even with a slow embedder."""

AGAIN_SECONDS = 2.0


@shared_task(name="maintenance.rebuild_facets")
def rebuild_facets() -> None:
    """Queue a rebuild of each collection and tenant, once every `facets.rebuild_hours`.

    Skips collections without live documents or with another embedder. Also deletes facets that the
    settings no longer name.
    """
    context = current()
    with once_in(context.broker, DONE, context.settings.facets.rebuild_hours) as due:
        for scope in _scopes(context) if due else ():
            rebuild_facets_of.apply_async(scope, queue=MAINTENANCE)


def _scopes(context: Context) -> list[tuple[str, str, Sequence[str]]]:
    """Collection, tenant and facets of each scope to rebuild; deletes facets of no setting."""
    scopes: list[tuple[str, str, Sequence[str]]] = []
    for record, live in context.ledger.collections.all():
        if not live or record.embedder != context.embedder.model:
            continue
        names = context.settings.facets.of(record.options.facets)
        tenants = context.ledger.tenants.all(record.name) if record.schema.tenants else [""]
        for tenant in tenants:
            context.ledger.facet_values.keep_only(FacetScope(record.name, tenant), names)
            scopes.append((record.name, tenant, names))
    return scopes


@shared_task(name="maintenance.rebuild_facets_of")
def rebuild_facets_of(collection: str, tenant: str, facets: Sequence[str], run: str = "") -> None:
    """Rebuild the facets of one scope.

    A rebuild that a caller requested waits until a running rebuild of the scope ends.
    """
    context = current()
    with alone(context.broker, f"facets:{collection}:{tenant}", LOCK_SECONDS) as lock:
        if lock is None:
            if run:
                rebuild_facets_of.apply_async(
                    (collection, tenant, facets, run), queue=MAINTENANCE, countdown=AGAIN_SECONDS
                )
            return
        try:
            record = context.ledger.collections.get(collection)
            done = FacetBuilder(
                context.ledger,
                context.store_of(record.store),
                context.embedder,
                context.settings.facets.max_values,
            ).rebuild(record, tenant, facets, run=run, on_batch=lock.reacquire)
        except CallslipError as error:
            log.warning("facets of %s put off: %s", collection, error.detail)
            return
    for facet, counts in done.items():
        log.info("facet %s of %s: %s", facet, collection, counts)


def request_rebuild(collection: str, tenant: str, facets: Sequence[str]) -> str:
    """Queue a rebuild, and return the id of the run, which its builds record.

    Raises BrokerDown if the broker does not answer.
    """
    run = uuid.uuid4().hex
    try:
        rebuild_facets_of.apply_async((collection, tenant, list(facets), run), queue=MAINTENANCE)
    except OperationalError as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error
    return run
