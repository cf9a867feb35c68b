"""/v1/search"""

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.identity.current import check_scope, note
from callslip.retrieval.messages import SearchRequest, SearchResponse
from callslip.retrieval.query.plan import check_request
from callslip.tasks.search import ask

blueprint = APIBlueprint("searches", __name__, abp_tags=[Tag(name="search")])


@blueprint.post("/v1/search", responses={200: SearchResponse})
def search(body: SearchRequest) -> Response:
    """Search a collection by meaning and by words; return passages and their scores."""
    # What the request alone shows to be invalid is refused without a message to the queue.
    check_scope(body.collection, body.tenant)
    check_request(body, current().settings.search)
    response = ask(current(), body)
    note(trace_id=response.trace_id)
    return answer(response)
