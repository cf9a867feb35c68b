"""/v1/collections"""

from contextlib import suppress
from dataclasses import replace

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from api import messages
from api.answers import answer
from callslip.errors import CollectionNotFound, InvalidRequest
from config import get_settings
from models.analyzer import VERSION as ANALYZER
from stores import naming
from stores.ledger import CollectionRecord
from stores.metrics import Metric
from stores.options import Options
from stores.records import CollectionSchema, VectorSpec
from stores.registry import check_set_up
from stores.schemas import check_tenant
from tasks import maintenance
from tasks.process import embedder, ledger, store

blueprint = APIBlueprint("collections", __name__, abp_tags=[Tag(name="collections")])


class CollectionPath(BaseModel):
    name: str = Field(description="the collection")


class TenantPath(CollectionPath):
    tenant: naming.Tenant = Field(description="the tenant")


def place_of(collection: str, tenant: str) -> CollectionRecord:
    """The collection, where there is one, and the tenant where one is given."""
    record = ledger().collections.get(collection)
    check_tenant(record.schema, tenant)
    if tenant:
        ledger().tenants.check(collection, tenant)
    return record


@blueprint.post("/v1/collections", responses={200: messages.Collection, 201: messages.Collection})
def create_collection(body: messages.NewCollection) -> Response:
    """Make a collection. The same call again answers 200 with the collection as it is."""
    given = body.model_dump(exclude_unset=True, exclude_none=True)
    kind: str = get_settings().store
    schema = CollectionSchema(body.name, _embedded(body.metric))
    with suppress(CollectionNotFound):  # what the request leaves out is as it was made
        known = ledger().collections.writable(body.name)
        kind, schema = known.store, known.schema
    if "store" in given:
        check_set_up(get_settings(), given["store"])
    kind = given.get("store", kind)
    schema = replace(schema, tenants=given.get("tenants", schema.tenants))
    if "metric" in given:
        schema = replace(schema, default=_embedded(body.metric))
    _check_options(body.options)
    store(kind).check_names(body.name)  # says what is wrong before the ledger knows the collection
    record, new = ledger().collections.create(
        schema, store=kind, embedder=embedder().model, analyzer=ANALYZER, options=body.options
    )
    store(kind).ensure_schema(schema)
    return answer(message(record, 0), 201 if new else 200)


@blueprint.put("/v1/collections/<string:name>/options", responses={200: Options})
def set_options(path: CollectionPath, body: Options) -> Response:
    """Change what is found out about a collection's documents, from the next submission on."""
    _check_options(body)
    ledger().collections.set_options(path.name, body)
    return answer(body)


@blueprint.get("/v1/collections", responses={200: messages.Collections})
def list_collections() -> Response:
    """Every collection with the number of its live documents."""
    found = [message(record, live) for record, live in ledger().collections.all()]
    return answer(messages.Collections(collections=found))


@blueprint.delete("/v1/collections/<string:name>", responses={202: messages.CollectionDeleted})
def delete_collection(path: CollectionPath) -> Response:
    """Delete a collection with all its documents: hidden at once, removed soon after."""
    ledger().collections.delete(path.name)
    maintenance.send_drop(path.name)
    return answer(messages.CollectionDeleted(collection=path.name), 202)


@blueprint.get("/v1/collections/<string:name>/receipts", responses={200: messages.Receipts})
def list_receipts(path: CollectionPath) -> Response:
    """What the deletions under this name removed: of the collection itself and of its tenants.

    They stay when the collection is gone.
    """
    going = path.name in ledger().collections.deleted()  # its receipt is yet to be written
    found = ledger().receipts.find(path.name)
    if not found and not going:
        ledger().collections.get(path.name)
    return answer(messages.Receipts(receipts=[messages.Receipt(**r.__dict__) for r in found]))


@blueprint.post("/v1/collections/<string:name>/tenants", responses={201: messages.Tenant})
def create_tenant(path: CollectionPath, body: messages.Tenant) -> Response:
    """Make a tenant; its first document would make it too."""
    record = ledger().collections.get(path.name)
    check_tenant(record.schema, body.tenant)
    store(record.store).check_names(path.name, body.tenant)
    ledger().tenants.create(path.name, body.tenant)
    store(record.store).ensure_tenant(path.name, body.tenant)
    return answer(body, 201)


@blueprint.get("/v1/collections/<string:name>/tenants", responses={200: messages.Tenants})
def list_tenants(path: CollectionPath) -> Response:
    """The collection's tenants."""
    ledger().collections.get(path.name)
    return answer(messages.Tenants(tenants=ledger().tenants.all(path.name)))


@blueprint.delete(
    "/v1/collections/<string:name>/tenants/<path:tenant>", responses={202: messages.Tenant}
)
def delete_tenant(path: TenantPath) -> Response:
    """Delete a tenant with all its documents: hidden at once, removed soon after."""
    ledger().collections.get(path.name)
    for document_id in ledger().tenants.delete(path.name, path.tenant):
        maintenance.send_removal(document_id)
    return answer(messages.Tenant(tenant=path.tenant), 202)


def _check_options(options: Options | None) -> None:
    if options and options.confirm and get_settings().llm.base_url is None:
        raise InvalidRequest(
            "option confirm asks a language model, but none is set up",
            hint="Set llm.base_url and llm.model in the settings, or leave confirm out.",
        )


def _embedded(metric: Metric) -> VectorSpec:
    """Vectors as the installation's embedder makes them."""
    return VectorSpec(embedder().dimension, metric, normalized=True)


def message(record: CollectionRecord, live: int) -> messages.Collection:
    """A collection as it is shown."""
    at = record.attachment
    return messages.Collection(
        name=record.name,
        store=record.store,
        embedder=record.embedder,
        dimension=record.schema.default.dimension,
        metric=record.schema.default.metric,
        vector_names=sorted(record.schema.named),
        tenants=record.schema.tenants,
        analyzer=record.analyzer,
        options=record.options,
        created_at=record.created_at,
        documents=live,
        attached=messages.AttachedTable(
            table=f"{at.table_schema}.{at.table_name}", vectors=at.vectors
        )
        if at
        else None,
    )
