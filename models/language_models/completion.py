"""The replies of a language model: parsed from the protocol's JSON, checked, with token counts."""

import json
from dataclasses import dataclass
from typing import Any, Generic, TypeGuard, TypeVar

from pydantic import BaseModel, ValidationError

from callslip.errors import BadReply

M = TypeVar("M", bound=BaseModel)

BYTES_PER_TOKEN = 3
"""Bytes of UTF-8 per token in an estimate.

For English and Korean prose the estimate is 1.1 to 1.5 times the number of e5's tokens
(examples/documents). Code and digits have up to 1.4 times the estimated tokens, base64 has twice
the estimate.
"""

PER_MESSAGE = 8
"""The most tokens that a server adds to each message: its role and its delimiters."""

_MOST_TOKENS = 10**8
"""The most tokens of a call; a larger reported number is ignored."""


@dataclass(frozen=True)
class Usage:
    """The numbers of tokens of one call."""

    input_tokens: int
    output_tokens: int

    @property
    def total(self) -> int:
        """The sum of input and output tokens."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True)
class Completion(Generic[M]):
    """A reply that matches the requested JSON schema.

    `model` is the model that the server reports, or else the requested one; `finish_reason` is why
    the reply ended.
    """

    value: M
    usage: Usage
    model: str
    finish_reason: str


def estimated(text: str) -> int:
    """Estimate the tokens of a text, for prose rather too many: a third of its bytes."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def prompt_tokens(instruction: str, content: str) -> int:
    """Estimate the tokens of a prompt of two messages, with `PER_MESSAGE` for each of them."""
    return estimated(instruction) + estimated(content) + 2 * PER_MESSAGE


def read(body: bytes, reply: type[M], *, model: str, prompt: int, most: int) -> Completion[M]:
    """Parse the reply in a response's body.

    `model` is the requested model, `prompt` the estimated tokens of the prompt, `most` the most
    tokens of the reply. If the server does not report the tokens, the input counts as `prompt`, and
    the output as a third of the reply's bytes, at most `most`, or as 0 without text. Raises
    BadReply, which has the token counts, for an unusable reply.
    """
    envelope = _envelope(body)
    choice = _first(envelope.get("choices"))
    message = _object(choice.get("message"))
    raw = message.get("content")
    text = raw.strip() if isinstance(raw, str) else ""
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
        raise bad(_unfit(error)) from None  # the original error may quote text
    reported_model = envelope.get("model")
    named = reported_model[:128] if isinstance(reported_model, str) and reported_model else model
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
    token_counts = _object(envelope.get("usage"))
    read, written = token_counts.get("prompt_tokens"), token_counts.get("completion_tokens")
    return Usage(
        read if _counts(read) else estimate.input_tokens,
        written if _counts(written) else estimate.output_tokens,
    )


def _counts(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= _MOST_TOKENS


def _unfenced(text: str) -> str:
    """Return the JSON of a reply, without a Markdown fence around it."""
    if not (text.startswith("```") and text.endswith("```")):
        return text
    return text.removeprefix("```").removeprefix("json").removesuffix("```").strip()


def _unfit(error: ValidationError) -> str:
    kinds = [each["type"] for each in error.errors(include_url=False, include_input=False)]
    if kinds[0] == "json_invalid":
        return "is not JSON"
    return f"does not match the requested schema ({kinds[0]})"
