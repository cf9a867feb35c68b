"""Filters on properties: `having_all` and `having_any` as one typed value for every store."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Operator = Literal["==", "!=", "~", ">", ">=", "<", "<=", "@", "contains", "in", "not-in"]


@dataclass(frozen=True)
class Condition:
    """`property operator value`; the value is normalized (see `parse`)."""

    prop: str
    operator: Operator
    value: object


@dataclass(frozen=True)
class Where:
    """All of `every` hold and, where `some` is not empty, at least one of `some` holds."""

    every: tuple[Condition, ...] = ()
    some: tuple[Condition, ...] = ()


def parse(
    having_all: Mapping[str, object] | None, having_any: Mapping[str, object] | None
) -> Where | None:
    """Read the two groups of a request; None when neither is given.

    Raises InvalidFilter, naming the key.
    """
    raise NotImplementedError
