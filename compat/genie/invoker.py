"""What every invoker is: made from a configuration, called with text, answering JSON."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import TypeAdapter

from callslip.errors import InvalidRequest, PermanentError
from compat.genie.configured import Configured, configured
from compat.genie.floor import Floor, here
from compat.raising import as_builtin

_JSON: TypeAdapter[Any] = TypeAdapter(Any)


class Invoker(ABC):
    """A door that Genie Flow knows, over Callslip's stores."""

    takes_text: ClassVar[bool] = False
    """Whether the content is a text as people write it, not JSON."""

    def __init__(self, config: Configured, floor: Floor) -> None:
        self._parameters = dict(config.parameters)
        self._floor = floor

    @classmethod
    def from_config(cls, config: Mapping[str, Any] | str | Path) -> Self:
        """An invoker as a `meta.yaml` says, or what is read from one; ValueError where it errs."""
        try:
            read = configured(config)
        except PermanentError as error:
            raise ValueError(str(error)) from None
        return cls(read, here(read.connection))

    @classmethod
    def over(cls, floor: Floor, config: Mapping[str, Any] | str | Path) -> Self:
        """An invoker over a floor that is there; the configuration's connection is not used."""
        return cls(configured(config), floor)

    def invoke(self, content: str) -> str:
        """Answer as JSON.

        KeyError where a collection or tenant does not exist; ValueError for what cannot be
        answered. What may go well at another time is raised as it is, a TransientError.
        """
        with as_builtin():
            return dumped(self.answer(content))

    @abstractmethod
    def answer(self, content: str) -> Any:
        """The same, as a value that is JSON; raises Callslip's errors."""


def dumped(value: Any) -> str:
    """A value as JSON."""
    return _JSON.dump_json(value).decode()


def read_object(content: str) -> dict[str, Any]:
    """The JSON object in the content; InvalidRequest where there is none."""
    return as_object(read_json(content))


def as_object(value: Any) -> dict[str, Any]:
    """The JSON value that must be an object; InvalidRequest for any other one."""
    if not isinstance(value, dict):
        raise InvalidRequest("the content is not a JSON object")
    return value


def read_json(content: str) -> Any:
    """The JSON in the content; InvalidRequest where there is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise InvalidRequest("the content is not JSON") from None
