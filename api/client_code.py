"""The parts of `callslip.client` that are generated: its models and the client that does not await.

`python -m api.client_code` writes both anew, and a test holds them against what it would write.
The models are those that answers are made of, from the OpenAPI document. Bounds are left out, since
the desk checks what it is sent; a word from a list may be a word that a newer desk has learned.
"""

import io
import json
import re
import subprocess
import sys
import textwrap
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from api.description import described

CLIENT = Path(__file__).resolve().parent.parent / "callslip" / "client"

LEFT_OUT = frozenset({"annotator", "faq", "invokers"})
"""Tags of the doors of other systems, whose clients are theirs."""

HEADER = '"""What the desk answers, from its OpenAPI document by `python -m api.client_code`."""'

WIDTH = 100

_PARTS_OF_REQUESTS = ("Options", "Ranking")
"""What requests are given as a whole; the rest of them are arguments of methods."""

_GENERATED = (
    *("--input-file-type", "openapi", "--output-model-type", "pydantic_v2.BaseModel"),
    *("--target-python-version", "3.11", "--base-class", "callslip.client.message.Message"),
    *("--enum-field-as-literal", "all", "--output-datetime-class", "datetime"),
    *("--use-standard-collections", "--use-union-operator", "--disable-timestamp"),
    "--strict-nullable",
    *("--use-schema-description", "--use-field-description", "--custom-file-header", HEADER),
    *("--formatters", "builtin"),
)
"""Of datamodel-code-generator."""

_KEPT = frozenset(
    {
        *("$ref", "type", "format", "enum", "const", "anyOf", "items", "prefixItems"),
        *("properties", "required", "additionalProperties", "description", "default", "title"),
    }
)

_IN_TURN = {
    "AsyncClient": "Client",
    "AsyncDeadline": "Deadline",
    "AsyncTransport": "Transport",
    "AsyncIterator": "Iterator",
    "AsyncGenerator": "Generator",
    "asynccontextmanager": "contextmanager",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "aclose": "close",
    "aiter_lines": "iter_lines",
    "aiter_raw": "iter_raw",
    "aiter_bytes": "iter_bytes",
    "aread": "read",
    "aiterator": "iterator",
    "anyio": "time",
    "_async": "_sync",
    "AsyncBaseTransport": "BaseTransport",
    "StopAsyncIteration": "StopIteration",
}
"""Names where something is awaited, and where nothing is."""


def models(document: dict[str, Any]) -> str:
    """The module of models; needs datamodel-code-generator."""
    source = {
        "openapi": "3.1.0",
        "info": {"title": "Callslip", "version": "1"},
        "paths": {},
        "components": {"schemas": _answers(document)},
    }
    text = subprocess.run(
        [sys.executable, "-m", "datamodel_code_generator", *_GENERATED],
        input=json.dumps(source),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    text = re.sub(r'( +)"""\n +([^\n]+)\n +"""', _docstring, text)
    return _formatted(text.replace("from __future__ import annotations\n", ""))


def _docstring(found: re.Match[str]) -> str:
    indent, text = found.groups()
    lines = textwrap.wrap(f'"""{text}"""', WIDTH, initial_indent=indent, subsequent_indent=indent)
    return "\n".join(lines)


def _answers(document: dict[str, Any]) -> dict[str, Any]:
    """The schemas that answers are made of, and the parts of requests that are given whole."""
    schemas: dict[str, Any] = dict(document["components"]["schemas"])
    wanted = set(_PARTS_OF_REQUESTS)
    for item in document["paths"].values():
        for operation in item.values():
            if LEFT_OUT & set(operation["tags"]):
                continue
            for status, response in operation["responses"].items():
                if status == "default":
                    continue
                for content in response.get("content", {}).values():
                    if "$ref" not in content["schema"] and "title" in content["schema"]:
                        schemas[content["schema"]["title"]] = content["schema"]
                        wanted.add(content["schema"]["title"])
                    wanted |= set(_named(content))
    while more := {name for at in wanted for name in _named(schemas[at])} - wanted:
        wanted |= more
    return {name: _readable(schemas[name]) for name in sorted(wanted)}


def _named(schema: Any) -> Iterator[str]:
    """The schemas that a schema refers to."""
    if isinstance(schema, dict):
        if isinstance(at := schema.get("$ref"), str):
            yield at.rsplit("/", 1)[-1]
        schema = list(schema.values())
    if isinstance(schema, list):
        for each in schema:
            yield from _named(each)


def _readable(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without bounds and titles, with any word beside those of a list."""
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("minItems", "maxItems") and "prefixItems" in schema:
            found[key] = value
        if key not in _KEPT or (key, value) == ("additionalProperties", False):
            continue
        if key == "properties":
            found[key] = {name: _readable(each) for name, each in value.items()}
        elif key == "title":
            continue
        elif isinstance(value, dict) and key in ("items", "additionalProperties"):
            found[key] = _readable(value)
        elif key in ("anyOf", "prefixItems"):
            found[key] = [_readable(each) for each in value]
        else:
            found[key] = value
    if found.get("type") == "string" and "enum" in found:
        words = {"type": "string", "enum": found.pop("enum")}
        found = {k: v for k, v in found.items() if k != "type"}
        found["anyOf"] = [words, {"type": "string"}]
    return found


def without_await(source: str) -> str:
    """The same module for those who do not await."""
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    lines = source.splitlines(keepends=True)
    for token in reversed(tokens):
        row, begin, end = token.start[0] - 1, token.start[1], token.end[1]
        if token.type == tokenize.NAME and token.string in ("async", "await"):
            lines[row] = lines[row][:begin] + lines[row][end:].removeprefix(" ")
        elif token.type == tokenize.NAME and token.string in _IN_TURN:
            lines[row] = lines[row][:begin] + _IN_TURN[token.string] + lines[row][end:]
        elif token.type == tokenize.STRING and token.string.startswith('"""'):
            for at in range(row, token.end[0]):
                lines[at] = lines[at].replace("await ", "").replace("AsyncClient", "Client")
                lines[at] = lines[at].replace("async ", "")
    return _formatted("".join(lines))


def clients() -> dict[Path, str]:
    """The modules of `_sync` as they follow from those of `_async`."""
    found = {}
    for path in sorted((CLIENT / "_async").glob("*.py")):
        found[CLIENT / "_sync" / path.name] = without_await(path.read_text(encoding="utf-8"))
    return found


def _formatted(text: str) -> str:
    """As the project is formatted, by ruff."""
    ruff = Path(sys.executable).with_name("ruff")
    program = str(ruff) if ruff.exists() else "ruff"
    place = ["--no-cache", "--quiet", "--stdin-filename", str(CLIENT / "models.py"), "-"]
    for step in (["check", "--fix-only", "--unsafe-fixes", "--select", "I,F401,UP"], ["format"]):
        text = subprocess.run(
            [program, *step, *place], input=text, capture_output=True, text=True, check=True
        ).stdout
    return text


def main() -> None:
    """Write what is generated."""
    from api.app import create_app

    (CLIENT / "models.py").write_text(models(described(create_app())), encoding="utf-8")
    for path, text in clients().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
