"""/v1/invokers: the invokers of Genie Flow's package for Weaviate."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from flask import Response, request
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, ConfigDict, Field

from callslip.api.http.admission import MOST_JSON
from callslip.api.http.context import current
from callslip.api.identity.current import caller
from callslip.api.identity.guard import check_permission
from callslip.api.identity.limits import spend_documents
from callslip.compat.context import adapter_context
from callslip.compat.genie import INVOKERS, WeaviatePersistInvoker
from callslip.compat.genie.configuration import Configured, configured, renamed
from callslip.compat.genie.delete import DeleteError
from callslip.compat.genie.invoker import dumped
from callslip.errors import InvalidRequest, NotFound
from callslip.tasks import compute

blueprint = APIBlueprint("invokers", __name__, abp_tags=[Tag(name="invokers")])


class InvokerPath(BaseModel):
    name: str = Field(description="such as `WeaviateVectorSimilaritySearchInvoker`")


class Invocation(BaseModel):
    """The input of a call to an invoker."""

    model_config = ConfigDict(extra="forbid")

    content: Any = Field(description="the text, or the JSON, that the invoker is called with")
    parameters: dict[str, Any] = Field(
        {},
        description="as under `parameters` of its meta.yaml; they win over the file of genie.meta",
    )


@blueprint.before_request
def _refuse_early() -> None:
    """Refuse a request without the invoker's permission before its JSON is read.

    Only the invoker that writes documents takes more JSON than a search.
    """
    name = (request.view_args or {}).get("name", "")
    if name not in INVOKERS:
        raise NotFound(f"there is no invoker {name!r}", hint=f"There are: {', '.join(INVOKERS)}.")
    check_permission(INVOKERS[name].permission)
    if INVOKERS[name] is not WeaviatePersistInvoker:
        request.max_content_length = MOST_JSON


@blueprint.post("/v1/invokers/<string:name>", responses={200: None})
def invoke(path: InvokerPath, body: Invocation) -> Response:
    """Call an invoker and return its result: documents with chunks, or counts."""
    meta = current().settings.genie.meta
    usual = _configured(meta).parameters if meta else {}
    parameters = {**usual, **renamed(body.parameters)}
    invoker, content = INVOKERS[path.name], body.content
    if not isinstance(content, str):
        if invoker.takes_text:
            raise InvalidRequest(f"the content of {path.name} is a text")
        content = json.dumps(content)
    context = adapter_context(current(), caller())
    if invoker is WeaviatePersistInvoker:  # it embeds chunks without a vector
        WeaviatePersistInvoker(Configured(parameters=parameters), context).scope(content)
        spend_documents(_count(content), len(content.encode("utf-8", "replace")))
        request = {"parameters": parameters, "content": content}
        written = compute.run(current(), "genie.persist", request)
        return Response(dumped(written), content_type="application/json")
    answer = invoker(Configured(parameters=parameters), context).answer(content)
    status = answer.status if isinstance(answer, DeleteError) else 200
    return Response(dumped(answer), status, content_type="application/json")


def _count(content: str) -> int:
    """The number of documents that a content has for `persist`, at least 1."""
    documents = json.loads(content).get("document")
    return max(1, len(documents)) if isinstance(documents, list) else 1


@cache
def _configured(meta: Path) -> Configured:
    return configured(meta)
