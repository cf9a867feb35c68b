"""/v1/attachments: tables and Chroma collections that other programs made, for reading only."""

from collections.abc import Sequence
from contextlib import closing

import numpy as np
from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.identity.current import check_whole
from callslip.api.messages import documents
from callslip.api.v1.collections import message
from callslip.compat import chroma, crate
from callslip.compat.attaching import Embedders
from callslip.errors import InvalidRequest
from callslip.models.embedders.contract import Embedder, Vectors
from callslip.stores.chroma.attached.server import check_address
from callslip.stores.chroma.attached.store import make_server
from callslip.stores.crate.setup import crate_connection
from callslip.stores.ledger import Attachment, CollectionRecord
from callslip.stores.registry import check_set_up
from callslip.tasks import compute

blueprint = APIBlueprint("attachments", __name__, abp_tags=[Tag(name="collections")])

EMBED_SECONDS = 60.0
"""How long an attachment waits for the vectors of a few documents."""


@blueprint.post("/v1/attachments", responses={200: documents.Collection, 201: documents.Collection})
def attach_table(body: documents.NewAttachment) -> Response:
    """Make a collection of a table in CrateDB, or of a collection in Chroma, of another program.

    It is only read. If the collection exists, return it with 200. Deleting the collection detaches
    the table and does not change it.
    """
    check_whole(body.name)
    if (body.table is None) == (body.chroma is None):
        raise InvalidRequest("expected either table or chroma")
    record, new = _chroma(body, body.chroma) if body.chroma else _table(body)
    return answer(message(record, 0), 201 if new else 200)


def _embedders() -> Embedders:
    return Embedders(current().embedder, current().previous_embedder)


def _table(body: documents.NewAttachment) -> tuple[CollectionRecord, bool]:
    check_set_up(current().settings, "crate")
    with closing(crate_connection(current().settings)) as connection:
        return crate.attach(
            body.name,
            body.table or "",
            body.vectors,
            ledger=current().ledger,
            connection=connection,
            embedders=_embedders(),
        )


def _chroma(
    body: documents.NewAttachment, named: documents.ChromaCollection
) -> tuple[CollectionRecord, bool]:
    at = Attachment(
        named.database, named.collection, body.vectors, check_address(named.url), named.tenant
    )
    with closing(make_server(current().settings.chroma, at.server)) as server:
        return chroma.attach(
            body.name,
            at,
            ledger=current().ledger,
            server=server,
            embedders=_embedders(),
            embed=_embed,
        )


def _embed(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """A worker embeds the texts: the server loads no model."""
    request = {"model": embedder.model, "texts": list(texts)}
    rows = compute.run(current(), "attached-tables.embed", request, seconds=EMBED_SECONDS)
    return np.asarray(rows, np.float32)
