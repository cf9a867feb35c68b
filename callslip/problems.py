"""Problems over HTTP (RFC 9457), from and to the errors that they stand for."""

from typing import Any

from callslip.errors import BY_SLUG, CallslipError, PermanentError

PREFIX = "urn:callslip:problem:"
"""Of the `type`; the slug of the error follows."""


def error_of(problem: dict[str, Any]) -> CallslipError:
    """The error that a problem describes, by its class; a PermanentError where none has its slug.

    Raises KeyError and AttributeError for what is no problem.
    """
    kind = BY_SLUG.get(problem["type"].removeprefix(PREFIX), PermanentError)
    return kind(problem["detail"], hint=problem["advice"])
