"""/v1/search"""

import re

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from callslip.api.http.context import current
from callslip.api.identity.current import check_scope, note
from callslip.errors import TransientError
from callslip.retrieval.messages import SearchRequest, SearchResponse
from callslip.tasks.search import ask_encoded
from callslip.vocabulary import NAME

blueprint = APIBlueprint("searches", __name__, abp_tags=[Tag(name="search")])


@blueprint.post("/v1/search", responses={200: SearchResponse})
def search(body: SearchRequest) -> Response:
    """Search a collection by meaning and by words; return passages and their scores."""
    check_scope(body.collection, body.tenant)
    if not re.fullmatch(NAME, body.collection):  # no message and no log has any text as a name
        current().ledger.collections.get(body.collection)
    try:
        encoded = ask_encoded(current(), body)
    except TransientError:  # to try again is no advice for a collection that does not exist
        current().ledger.collections.get(body.collection)
        raise
    note(trace_id=encoded.trace_id)
    return Response(encoded.body, content_type="application/json")
