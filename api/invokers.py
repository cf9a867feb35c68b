"""/v1/invokers: the invokers of Genie Flow's package for Weaviate."""

import json
from functools import cache
from typing import Any

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, ConfigDict, Field

from callslip.errors import InvalidRequest, NotFound
from compat.genie import INVOKERS
from compat.genie.configured import Configured, configured, renamed
from compat.genie.delete import DeleteError
from compat.genie.floor import Floor, floor
from compat.genie.invoker import dumped
from config import get_settings
from tasks import process
from tasks.search import ask

blueprint = APIBlueprint("invokers", __name__, abp_tags=[Tag(name="invokers")])


class InvokerPath(BaseModel):
    name: str = Field(description="such as `WeaviateVectorSimilaritySearchInvoker`")


class Invocation(BaseModel):
    """What an invoker is called with."""

    model_config = ConfigDict(extra="forbid")

    content: Any = Field(description="the text, or the JSON, that the invoker is called with")
    parameters: dict[str, Any] = Field(
        {},
        description="as under `parameters` of its meta.yaml; they win over the file of genie.meta",
    )


@blueprint.post("/v1/invokers/<string:name>", responses={200: None})
def invoke(path: InvokerPath, body: Invocation) -> Response:
    """Call an invoker and get what it answers: documents with chunks, or counts."""
    if path.name not in INVOKERS:
        raise NotFound(
            f"there is no invoker {path.name!r}", hint=f"There are: {', '.join(INVOKERS)}."
        )
    usual = _usual().parameters if get_settings().genie.meta else {}
    parameters = {**usual, **renamed(body.parameters)}
    invoker = INVOKERS[path.name](Configured(parameters=parameters), _floor())
    content = body.content
    if not isinstance(content, str):
        if invoker.takes_text:
            raise InvalidRequest(f"the content of {path.name} is a text")
        content = json.dumps(content)
    answer = invoker.answer(content)
    status = answer.status if isinstance(answer, DeleteError) else 200
    return Response(dumped(answer), status, content_type="application/json")


@cache
def _usual() -> Configured:
    meta = get_settings().genie.meta
    return configured(meta) if meta else Configured()


def _floor() -> Floor:
    return floor(ask, process.store)
