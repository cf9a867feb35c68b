"""Validation of the adapters' requests, and their errors as built-in exceptions of Python."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from callslip.errors import InvalidRequest, NotFound, PermanentError
from callslip.problems import MOST_ERRORS, of_count

M = TypeVar("M", bound=BaseModel)


def validated(model: type[M], value: Any) -> M:
    """Return the value as a message; raise InvalidRequest for an invalid value.

    The error names at most three wrong fields and never repeats their values.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        if (count := error.error_count()) > MOST_ERRORS:
            raise of_count(count) from None
        raise InvalidRequest("; ".join(faults(error)[:3])) from None


def faults(error: ValidationError) -> list[str]:
    """Return the messages of a validation error, one for each wrong field."""
    return [
        f"{'.'.join(str(part) for part in e['loc'])}: {e['msg'].removeprefix('Value error, ')}"
        for e in error.errors(include_input=False, include_url=False)
    ]


@contextmanager
def as_builtin() -> Iterator[None]:
    """Raise KeyError for NotFound, and ValueError for any other PermanentError below status 500.

    Other errors pass unchanged, such as a TransientError, after which a retry may succeed.
    """
    try:
        yield
    except NotFound as error:
        raise KeyError(error.detail) from error
    except PermanentError as error:
        if error.status >= 500:
            raise
        raise ValueError(error.detail) from error
