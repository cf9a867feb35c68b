"""Telemetry spans of an answer, its nodes and its calls of a language model.

Names follow OpenTelemetry's conventions for generative AI if the conventions have a name
(https://opentelemetry.io/docs/specs/semconv/gen-ai/). If telemetry is not configured, no span is
created. Spans contain text only if `telemetry.text` is set.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from callslip.agent.messages import Answer, AnswerRequest
from callslip.errors import BadReply
from callslip.models.language_models.completion import Completion, M
from callslip.retrieval.messages import SearchResponse

if TYPE_CHECKING:
    from callslip.models.telemetry import Spans

AGENT = "callslip"

RETRIEVALS = ("candidate_search", "narrowed_search")

MOST_VALUES = 16
"""The maximum number of items of a list that becomes an attribute."""

LONGEST_VALUE = 200
"""The maximum number of characters of a name or an id."""

Describe = Callable[[Mapping[str, Any], Mapping[str, Any]], None]
"""Called with a node's facts and the fields of the state that it changed."""


@contextmanager
def answering(
    spans: "Spans | None", request: AnswerRequest, conversation: str | None
) -> Iterator[Callable[[Answer], None]]:
    """Open the span of an answer; call the yielded function with the answer."""
    if spans is None:
        yield lambda answer: None
        return
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": AGENT,
        "gen_ai.data_source.id": request.collection,
    }
    if conversation is not None:
        attributes["gen_ai.conversation.id"] = conversation
    if spans.text:
        attributes["gen_ai.input.messages"] = _messages("user", request.question)
    with spans.span(f"invoke_agent {AGENT}", attributes) as span:

        def describe(answer: Answer) -> None:
            span.set_attributes(
                {
                    "gen_ai.usage.input_tokens": answer.usage.input_tokens,
                    "gen_ai.usage.output_tokens": answer.usage.output_tokens,
                    "callslip.answer.trace_id": answer.trace_id,
                    "callslip.answer.answered": answer.answered,
                    "callslip.answer.reason": answer.verdict.reason,
                    "callslip.answer.confidence": answer.verdict.confidence,
                    "callslip.answer.written_by": answer.written_by,
                    "callslip.answer.attempts": len(answer.attempts),
                }
            )
            if spans.text:
                message = _messages("assistant", answer.text, finish_reason="stop")
                span.set_attribute("gen_ai.output.messages", message)

        yield describe


@contextmanager
def node(
    spans: "Spans | None", name: str, attempt: int, request: AnswerRequest | None
) -> Iterator[Describe]:
    """Open the span of one run of a node; call the yielded function with the node's result."""
    if spans is None:
        yield lambda facts, update: None
        return
    attributes: dict[str, Any] = {"callslip.node.name": name, "callslip.node.attempt": attempt}
    if name in RETRIEVALS and request is not None:
        attributes["gen_ai.operation.name"] = "retrieval"
        attributes["gen_ai.data_source.id"] = request.collection
    with spans.span(name, attributes) as span:

        def describe(facts: Mapping[str, Any], update: Mapping[str, Any]) -> None:
            known = {k: v for k, v in facts.items() if _is_plain(v)}
            span.set_attributes({f"callslip.node.{key}": value for key, value in known.items()})
            response = update.get("response")
            if spans.text and isinstance(response, SearchResponse):
                span.set_attribute("gen_ai.retrieval.query.text", response.query)
                span.set_attribute("gen_ai.retrieval.documents", _documents(response))

        yield describe


@contextmanager
def chat(
    spans: "Spans | None", model: str, instruction: str, content: str, max_tokens: int
) -> Iterator[Callable[[Completion[M]], None]]:
    """Open the span of a language model call; call the yielded function with the completion."""
    if spans is None:
        yield lambda completed: None
        return
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",  # the protocol of the server
        "gen_ai.request.model": model,
        "gen_ai.request.max_tokens": max_tokens,
    }
    if spans.text:
        attributes["gen_ai.system_instructions"] = json.dumps(
            [_part(instruction)], ensure_ascii=False
        )
        attributes["gen_ai.input.messages"] = _messages("user", content)
    with spans.span(f"chat {model}", attributes, "CLIENT") as span:

        def describe(completed: Completion[M]) -> None:
            span.set_attributes(
                {
                    "gen_ai.response.model": completed.model,
                    "gen_ai.response.finish_reasons": [completed.finish_reason],
                    **_usage(completed.usage.input_tokens, completed.usage.output_tokens),
                }
            )
            if spans.text:
                text = completed.value.model_dump_json()
                message = _messages("assistant", text, finish_reason=completed.finish_reason)
                span.set_attribute("gen_ai.output.messages", message)

        try:
            yield describe
        except BadReply as error:
            span.set_attributes(_usage(error.input_tokens, error.output_tokens))
            raise


def _usage(read: int, written: int) -> dict[str, int]:
    return {"gen_ai.usage.input_tokens": read, "gen_ai.usage.output_tokens": written}


def _is_plain(value: Any) -> bool:
    """Whether the value is a number, a name or an id, or a short list of one of these types."""
    if isinstance(value, list | tuple):
        kinds = {type(each) for each in value}
        return len(kinds) == 1 and len(value) <= MOST_VALUES and all(map(_is_scalar, value))
    return _is_scalar(value)


def _is_scalar(value: Any) -> bool:
    short = not isinstance(value, str) or len(value) <= LONGEST_VALUE
    return isinstance(value, bool | int | float | str) and short


def _part(text: str) -> dict[str, str]:
    return {"type": "text", "content": text}


def _messages(role: str, text: str, **more: str) -> str:
    """Return a message in the JSON format of the conventions."""
    return json.dumps([{"role": role, "parts": [_part(text)], **more}], ensure_ascii=False)


def _documents(response: SearchResponse) -> str:
    hits = [{"id": h.chunk_id, "score": h.score, "content": h.text} for h in response.hits]
    return json.dumps(hits, ensure_ascii=False)
