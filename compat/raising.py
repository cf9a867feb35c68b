"""Requests of the doors checked, and errors as Python programs expect them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from callslip.errors import InvalidRequest, NotFound, PermanentError

M = TypeVar("M", bound=BaseModel)


def validated(model: type[M], value: Any) -> M:
    """The value as a message; InvalidRequest, naming the fields, never repeating the values."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InvalidRequest("; ".join(faults(error)[:3])) from None


def faults(error: ValidationError) -> list[str]:
    """What is wrong, a field each."""
    return [
        f"{'.'.join(str(part) for part in e['loc'])}: {e['msg'].removeprefix('Value error, ')}"
        for e in error.errors(include_input=False, include_url=False)
    ]


@contextmanager
def as_builtin() -> Iterator[None]:
    """KeyError for what does not exist, ValueError for what else cannot be answered.

    What may go well at another time is raised as it is, a TransientError.
    """
    try:
        yield
    except NotFound as error:
        raise KeyError(error.detail) from error
    except PermanentError as error:
        if error.status >= 500:
            raise
        raise ValueError(error.detail) from error
