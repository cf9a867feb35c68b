"""/v1/collections"""

from contextlib import suppress
from dataclasses import replace

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.identity.current import caller, check_collection, check_scope, check_whole
from callslip.api.messages import documents
from callslip.errors import CollectionNotFound, InvalidRequest
from callslip.messages.options import USUAL, Options
from callslip.models.embedders.choice import further_embedder
from callslip.models.text.kinds import version_of_kind
from callslip.stores import naming
from callslip.stores.ledger import CollectionRecord
from callslip.stores.metrics import Metric
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.stores.registry import check_set_up
from callslip.stores.schemas import check_tenant, check_vector_name
from callslip.stores.sides import kind_of
from callslip.tasks import maintenance

blueprint = APIBlueprint("collections", __name__, abp_tags=[Tag(name="collections")])


class CollectionPath(BaseModel):
    name: str = Field(description="the collection")


class TenantPath(CollectionPath):
    tenant: naming.Tenant = Field(description="the tenant")


def collection_of(collection: str, tenant: str) -> CollectionRecord:
    """Return the collection; check that the caller may see the tenant and, if named, it exists."""
    check_scope(collection, tenant)
    record = current().ledger.collections.get(collection)
    check_tenant(record.schema, tenant)
    if tenant:
        current().ledger.tenants.check(collection, tenant)
    return record


def visible_collections() -> list[tuple[CollectionRecord, int]]:
    """The collections that the caller may see, with the number of the live documents of them."""
    limits = caller()
    known = current().ledger.collections.all(names=limits.collections, tenants=limits.tenants)
    return [e for e in known if limits.sees_collection(e[0].name, tenants=e[0].schema.tenants)]


def visible_tenants(collection: str) -> list[str]:
    """The tenants of a collection that the caller may see."""
    limits = caller()
    return [t for t in current().ledger.tenants.all(collection) if limits.sees(collection, t)]


@blueprint.post("/v1/collections", responses={200: documents.Collection, 201: documents.Collection})
def create_collection(body: documents.NewCollection) -> Response:
    """Make a collection; if an equal one exists, return it with 200."""
    check_whole(body.name)
    fields = body.model_dump(exclude_unset=True, exclude_none=True)
    kind: str = current().settings.store
    schema = CollectionSchema(body.name, _embedded(body.metric))
    with suppress(CollectionNotFound):  # left-out fields keep their existing values
        known = current().ledger.collections.writable(body.name)
        kind, schema = known.store, known.schema
    if "store" in fields:
        check_set_up(current().settings, fields["store"])
    kind = fields.get("store", kind)
    schema = replace(schema, tenants=fields.get("tenants", schema.tenants))
    if "metric" in fields:
        schema = replace(schema, default=_embedded(body.metric))
    if body.vectors is not None:
        named = {name: _further(name, vector) for name, vector in body.vectors.items()}
        schema = replace(schema, named=named)
    _check_options(body.options)
    options = body.options or USUAL
    # An invalid name is refused before the ledger stores the collection.
    current().store_of(kind).check_names(body.name)
    record, new = current().ledger.collections.create(
        schema,
        store=kind,
        embedder=current().embedder.model,
        analyzer=version_of_kind(current().settings.language_codes, options.analyzer),
        options=body.options,
    )
    current().store_of(record.store).ensure_schema(schema)
    return answer(message(record, 0), 201 if new else 200)


@blueprint.put("/v1/collections/<string:name>/options", responses={200: Options})
def set_options(path: CollectionPath, body: Options) -> Response:
    """Change the enrichment of a collection; it applies from the next submission on."""
    check_whole(path.name)
    _check_options(body)
    current().ledger.collections.set_options(path.name, body)
    return answer(body)


@blueprint.get("/v1/collections", responses={200: documents.Collections})
def list_collections() -> Response:
    """List every collection with the number of its live documents."""
    messages = [message(record, live) for record, live in visible_collections()]
    return answer(documents.Collections(collections=messages))


@blueprint.delete("/v1/collections/<string:name>", responses={202: documents.CollectionDeleted})
def delete_collection(path: CollectionPath) -> Response:
    """Delete a collection with all its documents: hidden at once, removed soon after."""
    check_whole(path.name)
    current().ledger.collections.delete(path.name)
    maintenance.send_drop(current(), path.name)
    return answer(documents.CollectionDeleted(collection=path.name), 202)


@blueprint.get("/v1/collections/<string:name>/receipts", responses={200: documents.Receipts})
def list_receipts(path: CollectionPath) -> Response:
    """List the counts of removed objects for each deletion of this collection or its tenants.

    Receipts outlive the collection. They count documents of every reader, so only a caller who may
    read everything sees them.
    """
    limits, deleted = caller(), current().ledger.collections.deleted()
    going = limits.sees(path.name, "") and path.name in deleted  # its receipt comes later
    receipts = [
        receipt
        for receipt in current().ledger.receipts.find(path.name)
        if current().reader is None and limits.sees(path.name, receipt.tenant)
    ]
    if not receipts and not going:
        check_collection(path.name)
        current().ledger.collections.get(path.name)
    return answer(documents.Receipts(receipts=[documents.Receipt(**r.__dict__) for r in receipts]))


@blueprint.post("/v1/collections/<string:name>/tenants", responses={201: documents.Tenant})
def create_tenant(path: CollectionPath, body: documents.Tenant) -> Response:
    """Make a tenant; the first document of a tenant makes it too."""
    check_scope(path.name, body.tenant)
    record = current().ledger.collections.get(path.name)
    check_tenant(record.schema, body.tenant)
    current().store_of(record.store).check_names(path.name, body.tenant)
    current().ledger.tenants.create(path.name, body.tenant)
    current().store_of(record.store).ensure_tenant(path.name, body.tenant)
    return answer(body, 201)


@blueprint.get("/v1/collections/<string:name>/tenants", responses={200: documents.Tenants})
def list_tenants(path: CollectionPath) -> Response:
    """List the collection's tenants."""
    current().ledger.collections.get(path.name)
    return answer(documents.Tenants(tenants=visible_tenants(path.name)))


@blueprint.delete(
    "/v1/collections/<string:name>/tenants/<path:tenant>", responses={202: documents.Tenant}
)
def delete_tenant(path: TenantPath) -> Response:
    """Delete a tenant with all its documents: hidden at once, removed soon after."""
    check_scope(path.name, path.tenant)
    current().ledger.collections.get(path.name)
    for document_id in current().ledger.tenants.delete(path.name, path.tenant):
        maintenance.send_removal(current(), document_id)
    return answer(documents.Tenant(tenant=path.tenant), 202)


def _check_options(options: Options | None) -> None:
    if options and options.confirm and current().settings.llm.base_url is None:
        raise InvalidRequest(
            "option confirm asks a language model, but none is set up",
            hint="Set llm.base_url and llm.model in the settings, or leave confirm out.",
        )


def _embedded(metric: Metric) -> VectorSpec:
    """The vectors that the installation's embedder makes."""
    return VectorSpec(current().embedder.dimension, metric, normalized=True)


def _further(name: str, vector: documents.NewVector) -> VectorSpec:
    """The vectors that an embedder of the settings makes."""
    check_vector_name(name)
    embedder = further_embedder(current().further_embedders, vector.embedder)
    return replace(
        VectorSpec(embedder.dimension, vector.metric, normalized=True), embedder=embedder.model
    )


def message(record: CollectionRecord, live: int) -> documents.Collection:
    """Convert a collection to its response message; addresses are for administrators alone."""
    at, addresses = record.attachment, caller().may("admin")
    return documents.Collection(
        name=record.name,
        store=kind_of(record.store),
        embedder=record.embedder,
        dimension=record.schema.default.dimension,
        metric=record.schema.default.metric,
        vector_names=sorted(record.schema.named),
        vectors={
            name: documents.NamedVector(
                embedder=spec.embedder or None, dimension=spec.dimension, metric=spec.metric
            )
            for name, spec in sorted(record.schema.named.items())
        },
        tenants=record.schema.tenants,
        analyzer=record.analyzer,
        options=record.options,
        created_at=record.created_at,
        documents=live,
        attached=documents.AttachedTable(
            table=at.shown, vectors=at.vectors, server=(at.server or None) if addresses else None
        )
        if at
        else None,
    )
