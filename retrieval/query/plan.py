"""The plan of a search: the checked request, its filter and its ranking parameters."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from callslip.config.sections.ranking import SearchSettings
from callslip.config.settings import Settings
from callslip.errors import EmptyQuery, InvalidRequest, QueryTooLong
from callslip.models.entities import Recognizer
from callslip.models.text.normalization import normal_question
from callslip.retrieval.chance import new_id
from callslip.retrieval.messages import SearchRequest
from callslip.retrieval.query.as_of import AsOf, choose, filter_known_validity
from callslip.retrieval.query.filters import (
    at_level,
    check_not_reserved,
    check_properties_known,
    passages,
)
from callslip.retrieval.query.parameters import RankingParameters, ranking_parameters
from callslip.retrieval.query.understand import Understood, understand
from callslip.retrieval.timings import Timings
from callslip.stores.contract import Store
from callslip.stores.ledger import CollectionRecord, Ledger, Unreadable
from callslip.stores.metrics import Metric
from callslip.stores.properties.filters import Where, parse
from callslip.stores.schemas import check_tenant


@dataclass(frozen=True)
class Plan:
    """A request that was checked against its collection.

    `understood` is the analyzed question, or None if the request has only a vector. `top` is the
    maximum number of hits. `owner` is the name of the reader, or empty; `where` leaves out what
    is `unreadable` for it. `nothing` is true if no chunk can match. `trace_id` identifies the
    search.
    """

    trace_id: str
    request: SearchRequest
    record: CollectionRecord
    top: int
    understood: Understood | None
    tenant: str
    owner: str
    unreadable: Unreadable
    where: Where | None
    nothing: bool
    as_of: AsOf
    parameters: RankingParameters
    vector_name: str
    method: Metric | None
    horizon: float | None

    @property
    def collection(self) -> str:
        """The name of the collection."""
        return self.record.name

    @property
    def pool(self) -> int:
        """The maximum number of candidates from each retriever."""
        return max(self.parameters.pool, self.top)

    @property
    def chance(self) -> str:
        """The random seed of this search: its trace id, or the id of the trace it replays."""
        return self.request.replay or self.trace_id

    @property
    def topic(self) -> str:
        """The question without its time expression."""
        return self.understood.topic if self.understood else self.request.query

    @property
    def analyzed(self) -> str:
        """The topic with a space for `ㆍ`, the dot of Korean laws; analyzers read a vowel."""
        return self.topic.replace("ㆍ", " ")

    @property
    def needs_vectors(self) -> bool:
        """Whether chunks are read with their vectors."""
        return self.request.include_vector or self.parameters.mmr_lambda < 1


def make_plan(
    settings: Settings,
    ledger: Ledger,
    store_of: Callable[[str], Store],
    recognizer: Recognizer,
    request: SearchRequest,
    timings: Timings,
) -> Plan:
    """Check a request, analyze its question and return the plan.

    Raises EmptyQuery, QueryTooLong, InvalidFilter, InvalidRequest, CollectionNotFound,
    TenantNotFound or VectorNotFound if the request is not valid.
    """
    top = check_request(request, settings.search)
    record = ledger.collections.get(request.collection)
    store = store_of(record.store)
    with timings.stage("plan"):
        tenant = request.tenant or ""
        check_tenant(record.schema, tenant)
        if tenant:
            ledger.tenants.check(record.name, tenant)
        _check_dimension(record, request)
        names = store.property_names(record.name)
        if names is None:
            names = ledger.collections.property_names(record.name)
        where = parse(request.having_all, request.having_any)
        check_not_reserved(where)
        if ledger.reader is None:  # the names of properties would tell of unreadable documents
            check_properties_known(where, names)
        unreadable = ledger.readers.unreadable(record.name, tenant)
        now = datetime.now().astimezone()
        understood = understand(request.query, now.date(), recognizer) if request.query else None
        as_of = choose(request.as_of, understood, settings.search.as_of, now)
        where = unreadable.left_out_of(filter_known_validity(where, as_of, names))
        parameters = ranking_parameters(settings, record.options.ranking, request)
        named = request.operation_level
        level = settings.search.level if named is None else named
        nothing = False
        if level == "passages":
            where = passages(where)
        elif level != "every":
            where = at_level(store, record.name, tenant, level, where, unreadable)
            nothing = where is None
        if request.query_embedding is not None and not request.query:
            parameters = parameters.model_copy(update={"alpha": 1.0})
    return Plan(
        trace_id=new_id(),
        request=request,
        record=record,
        top=top,
        understood=understood,
        tenant=tenant,
        owner=ledger.reader.owner if ledger.reader else "",
        unreadable=unreadable,
        where=where,
        nothing=nothing,
        as_of=as_of,
        parameters=parameters,
        vector_name=request.vector_name or "",
        method=request.method,
        horizon=request.horizon,
    )


def _check_dimension(record: CollectionRecord, request: SearchRequest) -> None:
    spec, vector = record.schema.vector(request.vector_name or ""), request.query_embedding
    if vector is not None and len(vector) != spec.dimension:
        raise InvalidRequest(
            f"query_embedding has {len(vector)} numbers, the collection's vectors {spec.dimension}"
        )


def check_request(request: SearchRequest, settings: SearchSettings) -> int:
    """Check a request without access to a store; return the maximum number of hits.

    Raises EmptyQuery, QueryTooLong, InvalidFilter or InvalidRequest if the request is not valid.
    """
    if request.query or request.query_embedding is None:
        check_query(request.query, settings.max_query_chars)
    if request.query_embedding is not None:
        with np.errstate(over="ignore"):
            vector = np.asarray(request.query_embedding, np.float32)
        if not np.isfinite(vector).all():
            raise InvalidRequest("query_embedding has a number that is not finite in 32 bits")
    parse(request.having_all, request.having_any)
    top = request.top or settings.top or settings.max_top
    if top > settings.max_top:
        raise InvalidRequest(
            f"top is {top}, at most {settings.max_top} hits are given",
            hint="Lower top, or raise search.max_top in the settings.",
        )
    return top


def check_query(query: str, longest: int) -> str:
    """Return the question in its normal form, without outer white space.

    Raises EmptyQuery if it has no letter or digit, QueryTooLong if it has more than `longest`
    characters.
    """
    text = normal_question(query.encode("utf-8", "replace").decode("utf-8")).strip()
    if not any(character.isalnum() for character in text):
        raise EmptyQuery("the query has no letter or digit")
    if len(text) > longest:
        raise QueryTooLong(f"the query has {len(text)} characters, at most {longest} are read")
    return text
