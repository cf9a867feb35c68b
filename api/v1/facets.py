"""/v1/collections/{name}/facets: values that have vectors, rebuilding them, proposals, counts."""

from dataclasses import replace

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from callslip.api.http import responses
from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.messages import facets as messages
from callslip.api.v1.collections import CollectionPath, collection_of
from callslip.errors import InvalidRequest
from callslip.retrieval.facets.counts import count_by
from callslip.retrieval.facets.discovery import discover
from callslip.retrieval.facets.readable import readable_values
from callslip.retrieval.facets.vectors import check_can_be_built
from callslip.retrieval.query.filters import check_not_reserved, check_properties_known
from callslip.stores.ledger import FacetBuild, FacetValue
from callslip.stores.ledger.learning.facet_values import FacetScope
from callslip.stores.properties.filters import Condition, also, parse
from callslip.tasks import facets

blueprint = APIBlueprint("facets", __name__, abp_tags=[Tag(name="facets")])


@blueprint.post(
    "/v1/collections/<string:name>/facets/rebuild", responses={202: messages.FacetsAsked}
)
def rebuild_facets(path: CollectionPath, body: messages.RebuildFacets) -> Response:
    """Order a rebuild of the vectors of changed facet values by the maintenance worker."""
    record = collection_of(path.name, body.tenant or "")
    current().ledger.collections.writable(path.name)
    check_can_be_built(record, current().embedder)
    known = current().settings.facets.of(record.options.facets)
    if body.facet not in ("all", *known):
        raise InvalidRequest(
            f"{body.facet!r} is not one of the facets: {', '.join(known) or 'none'}",
            hint="Add it to facets.names in the settings, or to the collection's option facets.",
        )
    wanted = list(known) if body.facet == "all" else [body.facet]
    run = facets.request_rebuild(record.name, body.tenant or "", wanted)
    return answer(messages.FacetsAsked(run=run, facets=wanted), 202)


@blueprint.get("/v1/collections/<string:name>/facets", responses={200: messages.Facets})
def list_facets(path: CollectionPath, query: messages.FacetsQuery) -> Response:
    """List the facets of a collection, with their values and the result of the last rebuild."""
    collection_of(path.name, query.tenant or "")
    at = FacetScope(path.name, query.tenant or "")
    builds = [b for b in current().ledger.facet_values.builds(at) if query.facet in (None, b.facet)]
    facet_messages = [_readable(at, build, query.limit) for build in builds]
    return answer(messages.Facets(facets=facet_messages))


@blueprint.get(
    "/v1/collections/<string:name>/facets/proposals", responses={200: messages.FacetProposals}
)
def propose_facets(path: CollectionPath, query: messages.ProposalsQuery) -> Response:
    """Propose facets: properties that divide the collection, and clusters of passages."""
    record = collection_of(path.name, query.tenant or "")
    known = current().settings.facets.of(record.options.facets)
    proposals = discover(
        current().ledger, current().store_of(record.store), record.name, query.tenant or "", known
    )
    return answer(
        messages.FacetProposals(
            properties=[
                messages.ProposedProperty(
                    **p.__dict__ | {"values": dict(p.values), "score": round(p.score, 4)}
                )
                for p in proposals.properties
            ],
            clusters=[
                messages.ProposedCluster(
                    terms=list(c.terms), share=c.share, examples=list(c.examples)
                )
                for c in proposals.clusters
            ],
            sampled=proposals.sampled,
        )
    )


@blueprint.post("/v1/collections/<string:name>/counts", responses={200: messages.PropertyCounts})
def count_by_property(path: CollectionPath, body: messages.CountBy) -> Response:
    """Count passages and documents by the values of a property, under a filter."""
    record, tenant = collection_of(path.name, body.tenant or ""), body.tenant or ""
    ledger, store = current().ledger, current().store_of(record.store)
    where = parse(body.having_all, body.having_any)
    named = also(where, Condition(body.by, "==", ""))
    check_not_reserved(named)
    if ledger.reader is None:  # the names of properties would tell of unreadable documents
        known = store.property_names(path.name)
        check_properties_known(
            named, ledger.collections.property_names(path.name) if known is None else known
        )
    counted = count_by(ledger, store, record, tenant, body.by, where, body.limit)
    return answer(
        messages.PropertyCounts(
            by=body.by,
            values=[messages.ValueCount(**value.__dict__) for value in counted.values],
            distinct=counted.distinct,
            chunks=counted.chunks,
            documents=counted.documents,
        )
    )


def _readable(at: FacetScope, build: FacetBuild, limit: int) -> messages.Facet:
    """A facet as far as the caller may read the passages of its values."""
    ledger = current().ledger
    values = ledger.facet_values.values(at, build.facet)
    if ledger.reader is None:
        return _facet(build, values[:limit])
    store = current().store_of(ledger.collections.get(at.collection).store)
    values = readable_values(ledger, store, at, build.facet, values)
    limited = replace(build, calibration=None, failure=None, counts={"values": len(values)})
    return _facet(limited, values[:limit])


def _facet(build: FacetBuild, values: list[FacetValue]) -> messages.Facet:
    return messages.Facet(
        name=build.facet,
        run=build.run,
        began_at=build.began_at,
        ended_at=build.ended_at,
        counts=dict(build.counts),
        calibration=None if build.calibration is None else dict(build.calibration),
        error=responses.failure(build.failure),
        values=[
            messages.FacetValue(
                value=v.value,
                chunks=v.chunks,
                aliases=list(v.aliases),
                description=v.description,
                updated_at=v.updated_at,
            )
            for v in values
        ],
    )
