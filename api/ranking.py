"""/v1/collections/{name}/ranking: the numbers that its searches go by, and what to fit them on."""

import base64
from collections.abc import Iterator
from typing import Any

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from api.answers import answer
from api.collections import CollectionPath
from api.ranking_messages import ExamplesQuery, JudgedSearchLine, RankingMessage
from config import get_settings
from retrieval.knobs import knobs
from retrieval.messages import SearchRequest
from stores.ledger import JudgedSearch
from tasks.process import ledger

blueprint = APIBlueprint("ranking", __name__, abp_tags=[Tag(name="ranking")])

LINES = "application/x-ndjson"


@blueprint.get("/v1/collections/<string:name>/ranking", responses={200: RankingMessage})
def show_ranking(path: CollectionPath) -> Response:
    """What a search of a collection goes by: its options, else the settings."""
    options = ledger().collections.get(path.name).options
    asked = SearchRequest.model_validate({"collection": path.name, "query": ""})
    found = knobs(get_settings(), options.ranking, asked)
    return answer(RankingMessage.model_validate(found.__dict__))


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
    """Recorded searches of which hits helped, of all tenants, newest first, as `tune` reads them.

    They are ids and numbers: no text of a question or a document.
    """
    ledger().collections.get(path.name)
    return Response(_lines(path.name, query.limit), content_type=LINES)


def _lines(collection: str, limit: int) -> Iterator[str]:
    for search in ledger().judged.newest(collection, limit):
        yield _line(search).model_dump_json() + "\n"


def _line(search: JudgedSearch) -> JudgedSearchLine:
    vector = None if search.vector is None else search.vector.astype("<f2").tobytes()
    tried = search.settings["explored"]
    given: dict[str, Any] = {
        "question": search.question,
        "vector": vector and base64.b64encode(vector).decode(),
        "alpha": search.settings["alpha"],
        "fusion": search.settings["fusion"],
        "explored": tried and (tried["place"], tried["probability"]),
        "helped": search.helped,
        "basis": search.basis,
    }
    return JudgedSearchLine.model_validate(given)
