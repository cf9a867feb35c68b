"""/v1/attachments: tables of CrateDB's hybrid search specification that other programs made."""

from contextlib import closing

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.identity.current import check_whole
from callslip.api.messages import documents
from callslip.api.v1.collections import message
from callslip.compat.crate import attach
from callslip.stores.crate.setup import crate_connection
from callslip.stores.registry import check_set_up

blueprint = APIBlueprint("attachments", __name__, abp_tags=[Tag(name="collections")])


@blueprint.post("/v1/attachments", responses={200: documents.Collection, 201: documents.Collection})
def attach_table(body: documents.NewAttachment) -> Response:
    """Make a collection of a table in CrateDB that another program made; it is only read.

    If the collection exists, return it with 200. Deleting the collection detaches the table and
    does not change it.
    """
    check_whole(body.name)
    check_set_up(current().settings, "crate")
    with closing(crate_connection(current().settings)) as connection:
        record, new = attach(
            body.name,
            body.table,
            body.vectors,
            ledger=current().ledger,
            connection=connection,
            embedder=current().embedder,
        )
    return answer(message(record, 0), 201 if new else 200)
