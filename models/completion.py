"""What a language model answered: read from the protocol's JSON, checked, and what it cost."""

import json
from dataclasses import dataclass
from typing import Any, Generic, TypeGuard, TypeVar

from pydantic import BaseModel, ValidationError

from callslip.errors import BadReply

M = TypeVar("M", bound=BaseModel)

BYTES_PER_TOKEN = 3
"""Of UTF-8, in an estimate. For English and Korean prose it is 1.1 to 1.5 times the tokens of e5
(examples/documents). Code and digits have up to 1.4 times what is estimated, base64 twice."""

PER_MESSAGE = 8
"""Tokens that a server adds to each message, at most: its role and its ends."""

_MOST_TOKENS = 10**8
"""Of a call; a server that reports more reports nothing."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one call."""

    input_tokens: int
    output_tokens: int

    @property
    def total(self) -> int:
        """Both together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True)
class Completion(Generic[M]):
    """An answer of the shape that was asked for.

    `model` is what the server says that answered, `finish_reason` why it ended.
    """

    value: M
    usage: Usage
    model: str
    finish_reason: str


def estimated(text: str) -> int:
    """About how many tokens a text has, of prose rather too many: a third of its bytes."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def prompt_tokens(instruction: str, content: str) -> int:
    """About how many tokens a prompt has, by `estimated`."""
    return estimated(instruction) + estimated(content) + 2 * PER_MESSAGE


def read(body: bytes, reply: type[M], *, model: str, prompt: int, most: int) -> Completion[M]:
    """The answer in a response's body; BadReply, which carries what it cost, for one of no use.

    Where the server does not say what it used, `prompt` tokens are taken to have been read and a
    third of the text's bytes to have been written; where there is no text, nothing.
    """
    envelope = _envelope(body)
    choice = _first(envelope.get("choices"))
    message = _object(choice.get("message"))
    said = message.get("content")
    text = said.strip() if isinstance(said, str) else ""
    finish = str(choice.get("finish_reason") or "")[:32]
    usage = _usage(envelope, Usage(prompt, min(estimated(text), most)))

    def bad(what: str) -> BadReply:
        return BadReply(
            f"the language model's reply {what}",
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
        )

    if not choice:
        raise bad("is not what the protocol says")
    if message.get("refusal") or finish == "content_filter":
        raise bad("is a refusal")
    if finish == "length":
        raise bad(f"is longer than {most} tokens and was cut")
    if not text:
        raise bad("is empty")
    try:
        value = reply.model_validate_json(_unfenced(text))
    except ValidationError as error:
        raise bad(_unfit(error)) from None  # what it quotes may be text
    said_model = envelope.get("model")
    named = said_model[:128] if isinstance(said_model, str) and said_model else model
    return Completion(value, usage, named, finish)


def _envelope(body: bytes) -> dict[str, Any]:
    try:
        return _object(json.loads(body))
    except (ValueError, RecursionError):
        return {}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _first(values: Any) -> dict[str, Any]:
    return _object(values[0]) if isinstance(values, list) and values else {}


def _usage(envelope: dict[str, Any], estimate: Usage) -> Usage:
    given = _object(envelope.get("usage"))
    read, written = given.get("prompt_tokens"), given.get("completion_tokens")
    return Usage(
        read if _counts(read) else estimate.input_tokens,
        written if _counts(written) else estimate.output_tokens,
    )


def _counts(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= _MOST_TOKENS


def _unfenced(text: str) -> str:
    """The JSON of a reply that may stand within a Markdown fence."""
    if not (text.startswith("```") and text.endswith("```")):
        return text
    return text.removeprefix("```").removeprefix("json").removesuffix("```").strip()


def _unfit(error: ValidationError) -> str:
    kinds = [each["type"] for each in error.errors(include_url=False, include_input=False)]
    if kinds[0] == "json_invalid":
        return "is not JSON"
    return f"is not of the shape that was asked for ({kinds[0]})"
