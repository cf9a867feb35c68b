"""Arguments that several tools of the MCP server share, with their descriptions for models."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from callslip.stores.properties.filters import is_unicode
from callslip.vocabulary import NAME


def _text(value: object) -> object:
    """Convert null, which models send for omitted arguments, to an empty text."""
    if value is None:
        return ""
    if isinstance(value, str) and not is_unicode(value):
        raise ValueError("is not valid Unicode")
    return value


Text = Annotated[str, BeforeValidator(_text)]

Collection = Annotated[
    Text,
    Field(
        pattern=NAME,
        description="name of the collection of documents",
        examples=["main"],
        json_schema_extra={"pattern": NAME},  # a validator drops the pattern from the schema
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
