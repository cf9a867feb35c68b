"""The base class of invokers: made from a configuration, called with text, returns JSON."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import TypeAdapter

from callslip.callers import Permission
from callslip.compat.context import AdapterContext
from callslip.compat.errors import as_builtin
from callslip.compat.genie.configuration import Configured, configured
from callslip.compat.genie.connected import connected
from callslip.errors import InvalidRequest, PermanentError

_JSON: TypeAdapter[Any] = TypeAdapter(Any)


class Invoker(ABC):
    """Genie Flow's interface of an invoker, over Callslip's stores."""

    takes_text: ClassVar[bool] = False
    """Whether the content is plain text instead of JSON."""

    permission: ClassVar[Permission] = "read"
    """What the caller over HTTP must be permitted."""

    def __init__(self, config: Configured, context: AdapterContext) -> None:
        self._parameters = dict(config.parameters)
        self._context = context

    @classmethod
    def from_config(cls, config: Mapping[str, Any] | str | Path) -> Self:
        """Make an invoker from a `meta.yaml` or its content; raise ValueError if it is invalid."""
        try:
            read = configured(config)
        except PermanentError as error:
            raise ValueError(str(error)) from None
        return cls(read, connected(read.connection))

    @classmethod
    def over(cls, context: AdapterContext, config: Mapping[str, Any] | str | Path) -> Self:
        """Make an invoker that uses this context; ignore the connection of the configuration."""
        return cls(configured(config), context)

    def invoke(self, content: str) -> str:
        """Answer a request as JSON.

        Raises KeyError if a collection or tenant does not exist, ValueError for an invalid request,
        and a TransientError if a retry may succeed.
        """
        with as_builtin():
            return dumped(self.answer(content))

    @abstractmethod
    def answer(self, content: str) -> Any:
        """Answer a request as a value for JSON; raise Callslip's errors."""


def dumped(value: Any) -> str:
    """Return a value as JSON."""
    return _JSON.dump_json(value).decode()


def read_object(content: str) -> dict[str, Any]:
    """Parse the content as a JSON object; raise InvalidRequest for any other content."""
    return as_object(read_json(content))


def as_object(value: Any) -> dict[str, Any]:
    """Return the JSON value if it is an object; raise InvalidRequest for any other value."""
    if not isinstance(value, dict):
        raise InvalidRequest("the content is not a JSON object")
    return value


def read_json(content: str) -> Any:
    """Parse the content as JSON; raise InvalidRequest if it is not JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise InvalidRequest("the content is not JSON") from None
