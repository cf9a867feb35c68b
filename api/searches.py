"""/v1/search"""

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from api.answers import answer
from config import get_settings
from retrieval.messages import SearchRequest, SearchResponse
from retrieval.plan import check_request
from tasks.process import ledger
from tasks.search import ask

blueprint = APIBlueprint("searches", __name__, abp_tags=[Tag(name="search")])


@blueprint.post("/v1/search", responses={200: SearchResponse})
def search(body: SearchRequest) -> Response:
    """Search a collection by meaning and by words, and get passages with their reasons."""
    # What cannot be answered is refused here, without a trip through the queue.
    check_request(body, get_settings().search)
    ledger().collections.get(body.collection)
    return answer(ask(body))
