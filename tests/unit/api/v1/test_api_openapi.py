"""The OpenAPI document is generated from the code; here it is held against the routes."""

import re

import pytest
from context_parts import app_over
from flask_openapi3 import OpenAPI
from openapi_spec_validator import validate
from pydantic import BaseModel

from callslip.api.http.description import described
from callslip.api.v1.documents import ListQuery, TextQuery

PAGES = ("/", "/page/", "/static/", "/openapi.json", "/login", "/logout")
"""For people: the page, its parts and files, and the document itself."""


def operations(app: OpenAPI) -> set[tuple[str, str]]:
    return {(method, path) for path, item in described(app)["paths"].items() for method in item}


def routes(app: OpenAPI) -> set[tuple[str, str]]:
    found = set()
    for rule in app.url_map.iter_rules():
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
        if path.startswith(PAGES[1:]):
            continue
        methods = (rule.methods or set()) - {"HEAD", "OPTIONS"}
        methods -= {"GET"} if path == PAGES[0] else set()
        found |= {(method.lower(), path) for method in methods}
    return found


@pytest.mark.long
def test_the_openapi_document_is_valid() -> None:
    validate(described(app_over()))


def test_a_path_with_two_slashes_is_unknown_as_any_other() -> None:
    for path in ("/v1//collections", "/v1/nothing"):
        response = app_over().test_client().get(path)
        assert response.status_code == 404, path
        assert response.content_type == "application/problem+json"
        assert response.get_json()["detail"] == f"the API has no path {path}"


def test_every_route_is_described_and_nothing_else() -> None:
    app = app_over()
    assert operations(app) == routes(app)
    assert len(operations(app)) == 74


def test_every_operation_says_what_it_does_and_how_it_fails() -> None:
    for path, item in described(app_over())["paths"].items():
        for method, operation in item.items():
            assert operation["summary"], (method, path)
            problem = operation["responses"]["default"]["content"]
            assert "application/problem+json" in problem, (method, path)


def test_no_two_messages_share_a_name() -> None:
    names = described(app_over())["components"]["schemas"].keys()
    waiting, seen = list(BaseModel.__subclasses__()), dict[str, set[str]]()
    while waiting:
        model = waiting.pop()
        waiting += model.__subclasses__()
        setup = model.__module__.partition(".")[0]
        if model.__name__ in names and setup in ("agent", "api", "retrieval", "stores"):
            seen.setdefault(model.__name__, set()).add(model.__module__)
    assert {name: modules for name, modules in seen.items() if len(modules) > 1} == {}


def test_a_submission_is_described_as_a_file_and_as_text() -> None:
    paths = described(app_over())["paths"]
    body = paths["/v1/collections/{name}/documents"]["post"]["requestBody"]["content"]
    assert set(body) == {"multipart/form-data", "application/json"}


def test_the_schema_of_a_query_is_made_once() -> None:
    assert ListQuery.model_json_schema() is ListQuery.model_json_schema()
    assert TextQuery.model_json_schema() != ListQuery.model_json_schema()
    assert "limit" in ListQuery.model_json_schema(mode="serialization")["properties"]
