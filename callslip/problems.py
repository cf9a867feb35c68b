"""Converts errors to problems over HTTP (RFC 9457), and problems to errors."""

from typing import Any

from callslip.errors import BY_SLUG, CallslipError, InvalidRequest, PermanentError

PREFIX = "urn:callslip:problem:"
"""The start of the `type`; the slug of the error follows."""

MOST_ERRORS = 1_000
"""Wrong values of a request that an error names; of more it says the number alone, because to list
them takes six times as long as to find them."""


def of_count(count: int) -> InvalidRequest:
    """The error for a request with more than MOST_ERRORS wrong values."""
    return InvalidRequest(
        f"{count:,} values are wrong, or names are not known",
        hint="GET /openapi.json has the form of the request.",
    )


def error_of(problem: dict[str, Any]) -> CallslipError:
    """The error that a problem describes: the class of its slug, or PermanentError if unknown.

    Raises KeyError or AttributeError if the object is no problem.
    """
    kind = BY_SLUG.get(problem["type"].removeprefix(PREFIX), PermanentError)
    return kind(problem["detail"], hint=problem["advice"])
