"""/v1/collections/{name}/facets: values that have vectors, rebuilding them, proposals."""

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from api import facet_messages as messages
from api import views
from api.answers import answer
from api.collections import CollectionPath, place_of
from callslip.errors import InvalidRequest
from config import get_settings
from retrieval.facet_discovery import discover
from retrieval.facet_vectors import check_can_be_built
from stores.ledger import FacetBuild, FacetValue
from stores.ledger.facet_values import FacetPlace
from tasks import facets
from tasks.process import embedder, ledger, store

blueprint = APIBlueprint("facets", __name__, abp_tags=[Tag(name="facets")])


@blueprint.post(
    "/v1/collections/<string:name>/facets/rebuild", responses={202: messages.FacetsAsked}
)
def rebuild_facets(path: CollectionPath, body: messages.RebuildFacets) -> Response:
    """Rebuild the vectors of facet values that changed; the maintenance worker does it."""
    record = place_of(path.name, body.tenant or "")
    ledger().collections.writable(path.name)
    check_can_be_built(record, embedder())
    known = get_settings().facets.facets
    if body.facet not in ("all", *known):
        raise InvalidRequest(
            f"{body.facet!r} is not one of the facets: {', '.join(known) or 'none'}",
            hint="Add it to facets.names in the settings.",
        )
    wanted = list(known) if body.facet == "all" else [body.facet]
    run = facets.ask(record.name, body.tenant or "", wanted)
    return answer(messages.FacetsAsked(run=run, facets=wanted), 202)


@blueprint.get("/v1/collections/<string:name>/facets", responses={200: messages.Facets})
def list_facets(path: CollectionPath, query: messages.FacetsQuery) -> Response:
    """The facets of a collection, with their values and how the last rebuild went."""
    place_of(path.name, query.tenant or "")
    at = FacetPlace(path.name, query.tenant or "")
    builds = [b for b in ledger().facet_values.builds(at) if query.facet in (None, b.facet)]
    found = [_facet(b, ledger().facet_values.values(at, b.facet)[: query.limit]) for b in builds]
    return answer(messages.Facets(facets=found))


@blueprint.get(
    "/v1/collections/<string:name>/facets/proposals", responses={200: messages.FacetProposals}
)
def propose_facets(path: CollectionPath, query: messages.ProposalsQuery) -> Response:
    """What else could be a facet: properties that divide the collection, clusters of passages."""
    record = place_of(path.name, query.tenant or "")
    known = get_settings().facets.facets
    found = discover(ledger(), store(record.store), record.name, query.tenant or "", known)
    return answer(
        messages.FacetProposals(
            properties=[
                messages.ProposedProperty(
                    **p.__dict__ | {"values": dict(p.values), "score": round(p.score, 4)}
                )
                for p in found.properties
            ],
            clusters=[
                messages.ProposedCluster(
                    terms=list(c.terms), share=c.share, examples=list(c.examples)
                )
                for c in found.clusters
            ],
            sampled=found.sampled,
        )
    )


def _facet(build: FacetBuild, values: list[FacetValue]) -> messages.Facet:
    return messages.Facet(
        name=build.facet,
        run=build.run,
        began_at=build.began_at,
        ended_at=build.ended_at,
        counts=dict(build.counts),
        calibration=None if build.calibration is None else dict(build.calibration),
        error=views.failure(build.failure),
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
