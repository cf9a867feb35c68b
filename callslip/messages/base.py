"""The base class of all bodies, and how the client reads bodies of a newer server."""

from typing import Annotated, Any, Final, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

_NEWER: Final = {"newer": True}
"""The validation context in which unknown words are accepted."""


class Message(BaseModel):
    """A response, or a part of one."""

    model_config = ConfigDict(protected_namespaces=())


def _word(value: Any, checked: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    try:
        return checked(value)
    except ValidationError:
        if info.context is _NEWER and isinstance(value, str):
            return value
        raise


Word = Annotated[T, WrapValidator(_word)]
"""A `Literal` to which a newer server may add words; the client accepts unknown ones."""


def read(kind: type[M], value: Any) -> M:
    """Validate a response of a server that may be newer; keep unknown fields and words.

    Raises pydantic's ValidationError if a field is missing or of another type.
    """
    return kind.model_validate(value, extra="allow", context=_NEWER)
