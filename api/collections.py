"""/v1/collections"""

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from api import messages
from api.answers import answer
from models.analyzer import VERSION as ANALYZER
from stores.ledger import CollectionRecord
from stores.records import CollectionSchema, VectorSpec
from tasks import maintenance
from tasks.process import embedder, ledger, store

blueprint = APIBlueprint("collections", __name__, abp_tags=[Tag(name="collections")])


class CollectionPath(BaseModel):
    name: str = Field(description="the collection")


@blueprint.post("/v1/collections", responses={200: messages.Collection, 201: messages.Collection})
def create_collection(body: messages.NewCollection) -> Response:
    """Make a collection. The same call again answers 200 with the collection as it is."""
    kept = store()
    record, new = ledger().collections.create(
        body.name,
        store=kept.kind,
        embedder=embedder().model,
        dimension=embedder().dimension,
        analyzer=ANALYZER,
    )
    kept.ensure_schema(CollectionSchema(record.name, VectorSpec(record.dimension, normalized=True)))
    return answer(_message(record, 0), 201 if new else 200)


@blueprint.get("/v1/collections", responses={200: messages.Collections})
def list_collections() -> Response:
    """Every collection with the number of its live documents."""
    found = [_message(record, live) for record, live in ledger().collections.all()]
    return answer(messages.Collections(collections=found))


@blueprint.delete("/v1/collections/<string:name>", responses={202: messages.CollectionDeleted})
def delete_collection(path: CollectionPath) -> Response:
    """Delete a collection with all its documents: hidden at once, removed soon after."""
    ledger().collections.delete(path.name)
    maintenance.send_drop(path.name)
    return answer(messages.CollectionDeleted(collection=path.name), 202)


def _message(record: CollectionRecord, live: int) -> messages.Collection:
    return messages.Collection(**record.__dict__, documents=live)
