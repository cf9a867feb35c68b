"""Counts the documents that a search leaves out because they are not in force on its day."""

from callslip.errors import CallslipError
from callslip.retrieval.candidates.lookup import both, live_positions
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.candidates.retrieved import Retrieved
from callslip.retrieval.query.as_of import validity_filter, without_validity
from callslip.retrieval.query.plan import Plan
from callslip.retrieval.query.question import Query
from callslip.stores.properties.filters import matches
from callslip.stores.records import VALIDITY

MOST = 10
"""The best passages, in force or not, of which those that are not in force count."""


def count_not_in_force(
    resources: Resources, plan: Plan, query: Query, retrieved: Retrieved
) -> int | None:
    """Return the number of documents with passages that would be among the best on another day.

    Both retrievers search once more without the day, with the other conditions and the reader's
    limits: the first search has no passage that it left out. None if the store does not answer, or
    cannot leave out all that the reader may not read: that could take the place of what counts.
    """
    if plan.as_of.moment is None or plan.nothing:
        return 0
    if not plan.unreadable.complete:
        return None
    where = without_validity(plan.where, plan.as_of.moment)
    if where == plan.where:
        return 0
    in_force = validity_filter(None, plan.as_of.moment)
    try:
        alpha = retrieved.weight.alpha
        best = both(resources, plan, query, retrieved.scale, where, alpha, MOST)[:MOST]
        ids = [candidate.chunk_id for candidate in best]
        store = resources.store_of(plan.record.store)
        days = store.properties(plan.collection, ids, VALIDITY, tenant=plan.tenant)
        left_out = [i for i in ids if not matches(in_force, days.get(i, {}))]
        live = live_positions(resources, plan, left_out)
    except CallslipError:  # a hint is no reason to fail
        return None
    return len({seen.document_id for seen in live.values()})
