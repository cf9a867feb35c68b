"""Failures of the API, and of arguments, as text for a model."""

from collections.abc import Iterator
from contextlib import contextmanager

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from callslip.errors import CallslipError, TransientError


@contextmanager
def telling() -> Iterator[None]:
    """Convert errors to text for a model: the error and the advice."""
    try:
        yield
    except CallslipError as error:
        later = f" Try again after {error.retry_after:.0f} s." * isinstance(error, TransientError)
        raise ToolError(f"{error.detail}. {error.advice}{later}".strip()) from None
    except (ValidationError, KeyError, TypeError):
        raise ToolError(
            "the API answered otherwise than this server understands:"
            " are both of the same version of Callslip?"
        ) from None
    except UnicodeEncodeError:
        raise ToolError("an argument is not valid Unicode") from None
