"""The Python client is held against the OpenAPI document, and its two halves against each other."""

import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import httpx
import pytest
from context_parts import app_over
from pydantic import TypeAdapter

from callslip import client as face
from callslip.api.http.description import described
from callslip.client import NO_RETRIES, AsyncClient, Client, models
from callslip.errors import CallslipError
from tools import client_code

HELPERS = {
    *("chunks", "documents", "upload_folder", "wait_for_batch", "wait_until_live"),
    *("request_bytes", "request_events", "request_json", "request_lines", "request_text"),
    *("resumed_events", "set_readers"),
    *("close", "has_key", "url", "with_key"),
}
"""What stands over the operations, and the doors for what has no method."""

NAMES = {"collection": "name"}
"""What the paths call otherwise."""

OTHERWISE = {"file", "filename", "lines"}
"""Arguments that are not sent under their name."""

NOT_SENT = {("upload", "on_progress"), ("follow", "after"), ("answer_stream", "timeout")} | {
    ("edit_document", "if_match")
}
"""Arguments that are not sent, or as a header."""

FORMS = {"upload", "preview_file"}
"""Methods that send a form with a file."""

Operation = tuple[str, str]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return described(app_over())


def test_every_answer_of_the_document_is_made_of_models_of_the_client(
    document: dict[str, Any],
) -> None:
    wanted = {"Options", "Ranking"}
    for item in document["paths"].values():
        for operation in item.values():
            if not client_code.LEFT_OUT & set(operation["tags"]):
                answers = {k: v for k, v in operation["responses"].items() if k != "default"}
                wanted |= set(named(answers))
    schemas = document["components"]["schemas"]
    while more := {name for at in wanted for name in named(schemas[at])} - wanted:
        wanted |= more
    assert wanted <= set(dir(models))


def test_the_models_of_the_client_are_those_that_the_server_writes() -> None:
    for module, names in models.MODULES.items():
        source = import_module(f"callslip.messages.{module}")
        assert all(getattr(models, name) is getattr(source, name) for name in names)


def test_the_models_that_are_named_for_types_are_those_that_are_imported() -> None:
    text = Path(models.__file__).read_text(encoding="utf-8")
    typed = re.findall(r"from callslip\.messages\.(\w+) import (\w+) as ", text)
    table = [(module, name) for module, names in models.MODULES.items() for name in names]
    assert sorted(typed) == sorted(table)


def named(schema: Any) -> Iterator[str]:
    """The schemas that a schema refers to."""
    if isinstance(schema, dict):
        if isinstance(at := schema.get("$ref"), str):
            yield at.rsplit("/", 1)[-1]
        schema = list(schema.values())
    if isinstance(schema, list):
        for each in schema:
            yield from named(each)


def test_the_client_that_does_not_await_follows_from_the_one_that_does() -> None:
    for path, text in client_code.clients().items():
        assert path.read_text(encoding="utf-8") == text, "run `python -m tools.client_code`"
    there = {path.name for path in (client_code.CLIENT / "_sync").glob("*.py")}
    assert there == {path.name for path in client_code.clients()}


def test_both_clients_have_the_same_calls() -> None:
    assert calls(AsyncClient) - {"aclose"} == calls(Client) - {"close"}


def test_the_face_names_what_it_has() -> None:
    assert all(hasattr(face, name) for name in face.__all__)
    assert face.__all__ == sorted(face.__all__, key=lambda name: (not name.isupper(), name))


def test_every_operation_has_a_method_with_its_parameters_and_answer(
    document: dict[str, Any],
) -> None:
    operations = {
        (method.upper(), re.sub(r"\{\w+\}", "{}", path)): operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if not client_code.LEFT_OUT & set(operation["tags"])
    }
    seen: set[Operation] = set()
    for name in sorted(calls(Client) - HELPERS):
        operation, request = sent_request(name)
        assert operation in operations, (name, operation)
        seen.add(operation)
        assert_same_parameters(name, request, operations[operation], document)
        assert_same_answer(name, operations[operation], document)
    assert seen == operations.keys()


def calls(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def sent_request(name: str) -> tuple[Operation, httpx.Request]:
    """The request that a method sends when every argument is given."""
    requests: list[httpx.Request] = []

    def keep(request: httpx.Request) -> httpx.Response:
        request.read()
        requests.append(request)
        return httpx.Response(400, json={})

    http = httpx.Client(transport=httpx.MockTransport(keep))
    with Client("http://server", retries=NO_RETRIES, http=http) as client:
        method = getattr(client, name)
        given = {at: value(at, hint) for at, hint in parameters(method)}
        with suppress(CallslipError):
            result = method(**given)
            next(result if isinstance(result, Iterator) else iter(()), None)
    [request] = requests
    parts = re.sub(r"/3\.(png|csv)$", r"/{}.\1", request.url.path).split("/")
    path = "/".join("{}" if "-value" in part else part for part in parts)
    return (request.method, path), request


def parameters(method: Callable[..., Any]) -> list[tuple[str, Any]]:
    hints = get_type_hints(method)
    names = [name for name in inspect.signature(method).parameters if name != "self"]
    return [(name, hints[name]) for name in names if (method.__name__, name) not in NOT_SENT]


def value(name: str, hint: Any) -> Any:
    if name == "file":
        return b"content"
    kinds = [kind for kind in (get_args(hint) or (hint,)) if kind is not type(None)]
    first: Any = hint if get_origin(hint) in (list, Literal, Mapping) else kinds[0]
    if get_origin(first) is Literal:
        return get_args(first)[0]
    if get_origin(first) is list:
        inner = get_args(first)[0]
        return [value(name, inner)]
    if get_origin(first) in (dict, Mapping) or str(first).startswith("collections.abc.Mapping"):
        return {"key": 1}
    if isinstance(first, type) and issubclass(first, models.Message):
        return first.model_construct()
    made = {str: f"{name}-value", bool: True, int: 3, float: 1.5}
    return made.get(first, [])


def assert_same_parameters(
    name: str, request: httpx.Request, operation: dict[str, Any], document: dict[str, Any]
) -> None:
    described = operation.get("parameters", [])
    query = {each["name"]: each["schema"] for each in described if each["in"] == "query"}
    assert set(request.url.params) == query.keys(), name
    body = body_of(operation, name, document)
    hints = dict(parameters(getattr(Client, name)))
    in_path = {each["name"] for each in described if each["in"] == "path"}
    reply = {NAMES.get(at, at) if NAMES.get(at, at) in in_path else at for at in hints}
    if name == "set_options":
        body = {"options": {"type": "object"}}
    assert reply - OTHERWISE == in_path | query.keys() | body.keys() - OTHERWISE, name
    for at, schema in (query | body).items():
        if at in OTHERWISE or (name == "upload" and at in ("properties", "readers")):
            continue
        ours = kinds_of(TypeAdapter(hints[at]).json_schema(), {})
        assert ours == kinds_of(schema, document["components"]["schemas"]), (name, at)


def body_of(operation: dict[str, Any], name: str, document: dict[str, Any]) -> dict[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    kind = "multipart/form-data" if name in FORMS else "application/json"
    if kind not in content:
        return {}
    schema = content[kind]["schema"]
    schema = document["components"]["schemas"].get(
        schema.get("$ref", "").rsplit("/", 1)[-1], schema
    )
    properties: dict[str, Any] = schema["properties"]
    return properties


def kinds_of(schema: dict[str, Any], schemas: dict[str, Any]) -> set[Any]:
    """The types of JSON that fit, and words where only these do."""
    if "anyOf" in schema or "oneOf" in schema:
        parts = schema.get("anyOf") or schema["oneOf"]
        return set().union(*(kinds_of(part, schemas) for part in parts)) - {"null"}
    if "$ref" in schema:
        return kinds_of(schemas.get(schema["$ref"].rsplit("/", 1)[-1], {"type": "object"}), schemas)
    if "enum" in schema or "const" in schema:
        return {frozenset(schema.get("enum", [schema.get("const")]))}
    return {schema["type"]}


def assert_same_answer(name: str, operation: dict[str, Any], document: dict[str, Any]) -> None:
    returned = str(get_type_hints(getattr(Client, name))["return"])
    reply = set(re.findall(r"messages\.\w+\.(\w+)", returned))
    for status, response in operation["responses"].items():
        for kind, content in response.get("content", {}).items() if status != "default" else ():
            schema = content["schema"]
            output = schema.get("$ref", "").rsplit("/", 1)[-1] or schema.get("title")
            if name == "answer" and kind != "application/json":
                continue
            assert output is None or output in reply, (name, output)


ALLOWED = {
    "callslip",
    *("httpx", "httpcore", "h11", "anyio", "certifi", "idna", "sniffio"),
    *("pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"),
}
"""The client, and what httpx and pydantic bring."""

ALONE = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        known = top in sys.stdlib_module_names or top in sys.argv[1:] or top.startswith("_")
        if not known:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
import callslip.client
print(callslip.client.Client("http://127.0.0.1:9").url)
"""


def test_what_is_installed_by_default_is_what_the_client_needs() -> None:
    project = tomllib.loads((client_code.CLIENT.parents[1] / "pyproject.toml").read_text())
    names = {re.split(r"[<>=~!\[ ]", each)[0] for each in project["project"]["dependencies"]}
    assert names == {"anyio", "httpx", "pydantic"}


def test_the_client_needs_httpx_and_pydantic_alone() -> None:
    command = [sys.executable, "-c", ALONE, *ALLOWED]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
