"""Schemas of collections: their limits, the checks against changes, and their JSON form."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from callslip.errors import Conflict, InvalidRequest, TenantNotFound
from callslip.stores.metrics import METRICS
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.vocabulary import DEFAULT_COLLECTION as DEFAULT_COLLECTION
from callslip.vocabulary import DEFAULT_VECTOR
from callslip.vocabulary import NAME as NAME

MAX_DIMENSION = 65_536
MAX_NAMED = 16

LOADED = 1024
"""The most schemas that a process keeps: each search reads the schema of its collection."""


def check_schema(schema: CollectionSchema) -> None:
    """Raise InvalidRequest, which names the fault, if the schema is not allowed."""
    if not schema.name:
        raise InvalidRequest("A collection's name is empty.")
    if len(schema.named) > MAX_NAMED:
        raise InvalidRequest(f"{len(schema.named)} named vectors, at most {MAX_NAMED} are allowed.")
    for name, spec in {"default": schema.default, **schema.named}.items():
        if not name:
            raise InvalidRequest("A vector's name is empty.")
        if not 1 <= spec.dimension <= MAX_DIMENSION:
            raise InvalidRequest(
                f"The dimension of vector {name!r} is {spec.dimension}, not 1 to {MAX_DIMENSION}."
            )
        if spec.metric not in METRICS:
            raise InvalidRequest(
                f"The metric of vector {name!r} is {spec.metric!r}, not one of"
                f" {', '.join(METRICS)}."
            )


def check_vector_name(name: str) -> None:
    """Raise InvalidRequest if no new vector may have this name."""
    if name == DEFAULT_VECTOR:
        raise InvalidRequest(
            f"Vector {name!r} is the unnamed one of every collection.", hint="Choose another name."
        )
    if not re.fullmatch(NAME, name):
        raise InvalidRequest(
            f"{name!r} is no name of a vector.",
            hint="Letters, digits, `.`, `_`, `-`; at most 64, a letter or digit at both ends.",
        )


def check_made(made: CollectionSchema, wanted: CollectionSchema) -> None:
    """Raise Conflict, which names the difference, if the collection has another schema."""
    if made == wanted:
        return
    if made.default.dimension != wanted.default.dimension:
        raise Conflict(
            f"Collection {made.name} has {made.default.dimension} dimensions,"
            f" not {wanted.default.dimension}.",
            hint="Vectors of another embedder need a collection of their own.",
        )
    if made.tenants != wanted.tenants:
        has = "has" if made.tenants else "has no"
        raise Conflict(
            f"Collection {made.name} {has} tenants, which cannot be changed.",
            hint="Name a tenant exactly where it has them, or make another collection.",
        )
    raise Conflict(
        f"Collection {made.name} has other vectors:"
        f" {_vectors_text(made)}, not {_vectors_text(wanted)}.",
        hint="Metrics and names of vectors cannot be changed; make another collection.",
    )


def check_tenant(schema: CollectionSchema, tenant: str) -> None:
    """Raise InvalidRequest if a collection with tenants gets none, or one without tenants gets one.

    `tenant` is empty for no tenant.
    """
    if schema.tenants and not tenant:
        raise InvalidRequest(
            f"Collection {schema.name} has tenants, and none was named.",
            hint="Name one as `tenant`, at the command line with --tenant.",
        )
    if tenant and not schema.tenants:
        raise InvalidRequest(
            f"Collection {schema.name} has no tenants, {tenant!r} was given.",
            hint="Leave `tenant` out.",
        )


def tenant_missing(collection: str, tenant: str) -> TenantNotFound:
    """The error for a tenant that does not exist."""
    return TenantNotFound(f"Collection {collection} has no tenant {tenant!r}.")


def dump_schema(schema: CollectionSchema) -> str:
    """Write a schema as JSON, without the field `embedder` of vectors that have no embedder."""
    data = asdict(schema)
    for spec in (data["default"], *data["named"].values()):
        if not spec["embedder"]:
            del spec["embedder"]
    return json.dumps(data, ensure_ascii=False, sort_keys=True)


@lru_cache(LOADED)
def load_schema(text: str) -> CollectionSchema:
    """Read a schema back."""
    data: Mapping[str, Any] = json.loads(text)
    return CollectionSchema(
        name=data["name"],
        default=VectorSpec(**data["default"]),
        named={name: VectorSpec(**spec) for name, spec in data["named"].items()},
        tenants=data["tenants"],
    )


def _vectors_text(schema: CollectionSchema) -> str:
    vectors = {"default": schema.default, **schema.named}
    texts = (
        f"{name} ({'normalized ' if spec.normalized else ''}{spec.metric}, {spec.dimension}"
        f"{f', by {spec.embedder}' if spec.embedder else ''})"
        for name, spec in vectors.items()
    )
    return ", ".join(texts)
