"""Arguments that several tools of the MCP server take, with what a model is told of them."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from stores.filters import is_unicode
from stores.schemas import NAME


def _text(given: object) -> object:
    """Models send null for what they leave out."""
    if given is None:
        return ""
    if isinstance(given, str) and not is_unicode(given):
        raise ValueError("is not valid Unicode")
    return given


Text = Annotated[str, BeforeValidator(_text)]

Collection = Annotated[
    Text,
    Field(
        pattern=NAME,
        description="name of the collection of documents",
        examples=["main"],
        json_schema_extra={"pattern": NAME},  # is left out after a validator
    ),
]
Tenant = Annotated[
    Text, Field(max_length=64, description="whose documents; only of a collection with tenants")
]
AsOf = Annotated[
    Text,
    Field(
        max_length=64,
        description="only what is in force then: ISO 8601 day, `now`, or `any` for all versions;"
        " left out: the time that the question names",
        examples=["2020-03-31"],
    ),
]
Conditions = Annotated[
    dict[str, Any] | None,
    Field(
        description="conditions on properties: a key is `property` or `property OPERATOR`, the"
        " operator one of == != ~ > >= < <= @ in not-in",
        examples=[{"doc_type": "law", "year >=": 2024}],
    ),
]
