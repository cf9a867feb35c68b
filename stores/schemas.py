"""Schemas of collections: what is allowed, what may not change, and how stores keep them."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from callslip.errors import Conflict, InvalidRequest, TenantNotFound
from stores.metrics import METRICS
from stores.records import CollectionSchema, VectorSpec

MAX_DIMENSION = 65_536
MAX_NAMED = 16

DEFAULT_COLLECTION = "main"
"""Where a person names none."""

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}[A-Za-z0-9]$|^[A-Za-z0-9]$"
"""What a person may call a collection."""


def check_schema(schema: CollectionSchema) -> None:
    """Raise InvalidRequest, naming what is wrong."""
    if not schema.name:
        raise InvalidRequest("A collection's name is empty.")
    if len(schema.named) > MAX_NAMED:
        raise InvalidRequest(f"{len(schema.named)} named vectors, at most {MAX_NAMED} are kept.")
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


def check_made(made: CollectionSchema, wanted: CollectionSchema) -> None:
    """Raise Conflict, saying what differs, where the collection was made with another schema."""
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
        f"Collection {made.name} has other vectors: {_told(made)}, not {_told(wanted)}.",
        hint="Metrics and names of vectors cannot be changed; make another collection.",
    )


def check_tenant(schema: CollectionSchema, tenant: str) -> None:
    """Raise InvalidRequest unless a tenant is given exactly where the collection has tenants."""
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
    """Write a schema as JSON."""
    return json.dumps(asdict(schema), ensure_ascii=False, sort_keys=True)


def load_schema(text: str) -> CollectionSchema:
    """Read a schema back."""
    data: Mapping[str, Any] = json.loads(text)
    return CollectionSchema(
        name=data["name"],
        default=VectorSpec(**data["default"]),
        named={name: VectorSpec(**spec) for name, spec in data["named"].items()},
        tenants=data["tenants"],
    )


def _told(schema: CollectionSchema) -> str:
    vectors = {"default": schema.default, **schema.named}
    told = (
        f"{name} ({'normalized ' if spec.normalized else ''}{spec.metric}, {spec.dimension})"
        for name, spec in vectors.items()
    )
    return ", ".join(told)
