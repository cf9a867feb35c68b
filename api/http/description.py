"""Generates the OpenAPI document from the routes, and corrects the generator's errors."""

from functools import cache
from typing import Any

from flask import Response
from flask_openapi3 import OpenAPI

from callslip.api.http import key
from callslip.api.http.context import context_of
from callslip.api.http.problems import MEDIA_TYPE

_PROBLEM = {
    "description": "What is wrong and what to do (RFC 9457)",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


def described(app: OpenAPI) -> dict[str, Any]:
    """The document: every error of every operation is a problem, and no null remains in it."""
    document: dict[str, Any] = _without_nulls(app.api_doc)
    for item in document["paths"].values():
        for operation in item.values():
            operation["responses"].pop(str(app.validation_error_status), None)
            operation["responses"]["default"] = _PROBLEM
    key.describe(document, context_of(app).settings)
    return document


def serve_description(app: OpenAPI) -> None:
    """Serve the document at /openapi.json; it is generated once, which takes 10 ms."""

    @cache
    def text() -> str:
        return app.json.dumps(described(app))

    app.add_url_rule(
        "/openapi.json", "openapi", lambda: Response(text(), content_type="application/json")
    )


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(v) for v in value]
    return value
