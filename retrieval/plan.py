"""Where a search looks and by which numbers it ranks; every name that it gives is checked here."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from callslip.errors import EmptyQuery, InvalidRequest, QueryTooLong
from config.ranking import SearchSettings
from config.settings import Settings
from retrieval.clamp import AsOf, choose, clamp_known
from retrieval.knobs import Knobs, knobs
from retrieval.messages import SearchRequest
from retrieval.narrowing import at_level, check_properties_known, passages
from stores.contract import Store
from stores.filters import Where, parse
from stores.ledger import CollectionRecord, Ledger
from stores.metrics import Metric
from stores.schemas import check_tenant


@dataclass(frozen=True)
class Plan:
    """Where a search looks; `nothing` where no chunk can match."""

    collection: str
    tenant: str
    where: Where | None
    nothing: bool
    as_of: AsOf
    knobs: Knobs
    vector_name: str
    method: Metric | None
    horizon: float | None


def make_plan(
    settings: Settings,
    ledger: Ledger,
    store: Store,
    collection: CollectionRecord,
    request: SearchRequest,
) -> Plan:
    """What is looked for where; every name that the request gives is checked here."""
    tenant = request.tenant or ""
    check_tenant(collection.schema, tenant)
    if tenant:
        ledger.tenants.check(collection.name, tenant)
    spec, given = collection.schema.vector(request.vector_name or ""), request.query_embedding
    if given is not None and len(given) != spec.dimension:
        raise InvalidRequest(
            f"query_embedding has {len(given)} numbers, the collection's vectors {spec.dimension}"
        )
    names = store.property_names(collection.name)
    if names is None:
        names = ledger.collections.property_names(collection.name)
    where = parse(request.having_all, request.having_any)
    check_properties_known(where, names)
    as_of = choose(request.as_of, request.query, settings.search.as_of, datetime.now().astimezone())
    where = clamp_known(where, as_of, names)
    chosen = knobs(settings, collection.options.ranking, request)
    named = request.operation_level
    level = settings.search.level if named is None else named
    nothing = False
    if level == "passages":
        where = passages(where)
    elif level != "every":
        where = at_level(store, collection.name, tenant, level, where)
        nothing = where is None
    if request.query_embedding is not None and not request.query:
        chosen = chosen.model_copy(update={"alpha": 1.0})
    vectors = request.vector_name or "", request.method, request.horizon
    return Plan(collection.name, tenant, where, nothing, as_of, chosen, *vectors)


def check_request(request: SearchRequest, settings: SearchSettings) -> int:
    """Refuse what cannot be answered, without asking any store; gives the most hits to return."""
    if request.query or request.query_embedding is None:
        check_query(request.query, settings.max_query_chars)
    if request.query_embedding is not None and not np.isfinite(request.query_embedding).all():
        raise InvalidRequest("query_embedding holds a value that is not a finite number")
    parse(request.having_all, request.having_any)
    top = request.top or settings.top or settings.max_top
    if top > settings.max_top:
        raise InvalidRequest(
            f"top is {top}, at most {settings.max_top} hits are given",
            hint="Lower top, or raise search.max_top in the settings.",
        )
    return top


def check_query(query: str, longest: int) -> str:
    """The question without outer white space; EmptyQuery or QueryTooLong where it is none."""
    text = query.encode("utf-8", "replace").decode("utf-8").strip()
    if not any(character.isalnum() for character in text):
        raise EmptyQuery("the query has no letter or digit")
    if len(text) > longest:
        raise QueryTooLong(f"the query has {len(text)} characters, at most {longest} are read")
    return text
