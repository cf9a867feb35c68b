"""/v1/search"""

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from api.answers import answer
from config import get_settings
from retrieval.engine import check_query, check_top
from retrieval.messages import SearchRequest, SearchResponse
from stores.filters import parse
from tasks.process import ledger
from tasks.search import ask

blueprint = APIBlueprint("searches", __name__, abp_tags=[Tag(name="search")])


@blueprint.post("/v1/search", responses={200: SearchResponse})
def search(body: SearchRequest) -> Response:
    """Search a collection by meaning and by words, and get passages with their reasons."""
    settings = get_settings().search
    # What cannot be answered is refused here, without a trip through the queue.
    check_query(body.query, settings.max_query_chars)
    check_top(body.top or settings.top, settings.max_top)
    parse(body.having_all, body.having_any)
    ledger().collections.get(body.collection)
    return answer(ask(body))
