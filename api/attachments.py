"""/v1/attachments: tables of CrateDB's hybrid search specification that others made."""

from contextlib import closing

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from api import messages
from api.answers import answer
from api.collections import message
from compat.crate import attach
from config import get_settings
from stores.registry import check_set_up, crate_connection
from tasks.process import embedder, ledger

blueprint = APIBlueprint("attachments", __name__, abp_tags=[Tag(name="collections")])


@blueprint.post("/v1/attachments", responses={200: messages.Collection, 201: messages.Collection})
def attach_table(body: messages.NewAttachment) -> Response:
    """Make a collection of a table in CrateDB that somebody else made; it is only read.

    The same call again answers 200 with the collection as it is. Deleting the collection detaches
    the table, which stays as it is.
    """
    check_set_up(get_settings(), "crate")
    with closing(crate_connection(get_settings())) as connection:
        record, new = attach(
            body.name,
            body.table,
            body.vectors,
            ledger=ledger(),
            connection=connection,
            embedder=embedder(),
        )
    return answer(message(record, 0), 201 if new else 200)
