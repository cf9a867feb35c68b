"""/v1/collections/{name}/ranking: the ranking parameters, and examples to fit them on."""

import base64
from collections.abc import Iterator
from typing import Any

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.identity.current import check_whole
from callslip.api.messages.ranking import ExamplesQuery, JudgedSearchLine, RankingMessage
from callslip.api.v1.collections import CollectionPath
from callslip.retrieval.messages import SearchRequest
from callslip.retrieval.query.parameters import ranking_parameters
from callslip.stores.ledger import JudgedSearch, Ledger

blueprint = APIBlueprint("ranking", __name__, abp_tags=[Tag(name="ranking")])

LINES = "application/x-ndjson"


@blueprint.get("/v1/collections/<string:name>/ranking", responses={200: RankingMessage})
def show_ranking(path: CollectionPath) -> Response:
    """The ranking parameters of a collection: its options, or the settings."""
    check_whole(path.name)
    options = current().ledger.collections.get(path.name).options
    request = SearchRequest.model_validate({"collection": path.name, "query": ""})
    parameters = ranking_parameters(current().settings, options.ranking, request)
    return answer(RankingMessage.model_validate(parameters.__dict__))


@blueprint.get(
    "/v1/collections/<string:name>/ranking/examples",
    responses={
        200: {
            "description": "a line of JSON for each search",
            "content": {LINES: {"schema": JudgedSearchLine.model_json_schema()}},
        }
    },
)
def list_examples(path: CollectionPath, query: ExamplesQuery) -> Response:
    """Recorded searches with judged hits, of all tenants, newest first, for `tune`.

    The lines contain ids and numbers, and no text of a question or a document.
    """
    check_whole(path.name)
    current().ledger.collections.get(path.name)
    return Response(_lines(current().ledger, path.name, query.limit), content_type=LINES)


def _lines(ledger: Ledger, collection: str, limit: int) -> Iterator[str]:
    for search in ledger.judged.newest(collection, limit):
        yield _line(search).model_dump_json() + "\n"


def _line(search: JudgedSearch) -> JudgedSearchLine:
    vector = None if search.vector is None else search.vector.astype("<f2").tobytes()
    fields: dict[str, Any] = {
        "question": search.question,
        "vector": vector and base64.b64encode(vector).decode(),
        "alpha": search.settings["alpha"],
        "fusion": search.settings["fusion"],
        "explored": _explored(search),
        "helped": search.helped,
        "basis": search.basis,
    }
    return JudgedSearchLine.model_validate(fields)


def _explored(search: JudgedSearch) -> tuple[int, float] | None:
    """Rank and probability of the explored chunk; older versions stored the rank as `place`."""
    stored = search.settings["explored"]
    return stored and (stored.get("position") or stored["place"], stored["probability"])
