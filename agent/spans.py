"""What spans say of an answer, its nodes and its calls of a language model.

Names are those of OpenTelemetry's conventions for generative AI where there is one
(https://opentelemetry.io/docs/specs/semconv/gen-ai/). Without spans nothing is made; without
`telemetry.text` they hold no text.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent.messages import Answer, AnswerRequest
from callslip.errors import BadReply
from models.completion import Completion, M
from retrieval.messages import SearchResponse

if TYPE_CHECKING:
    from models.telemetry import Spans

AGENT = "callslip"

RETRIEVALS = ("candidate_search", "narrowed_search")

MOST_VALUES = 16
"""Of a list that becomes an attribute."""

LONGEST_VALUE = 200
"""Characters of a name or an id."""

Told = Callable[[Mapping[str, Any], Mapping[str, Any]], None]
"""Is told a node's facts and the fields of the state that it changed."""


@contextmanager
def answering(
    spans: "Spans | None", request: AnswerRequest, conversation: str | None
) -> Iterator[Callable[[Answer], None]]:
    """The span of a whole answer, the first of its trace; tell it the answer."""
    if spans is None:
        yield lambda answer: None
        return
    given: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": AGENT,
        "gen_ai.data_source.id": request.collection,
    }
    if conversation is not None:
        given["gen_ai.conversation.id"] = conversation
    if spans.text:
        given["gen_ai.input.messages"] = _messages("user", request.question)
    with spans.span(f"invoke_agent {AGENT}", given, root=True) as span:

        def told(answer: Answer) -> None:
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
                said = _messages("assistant", answer.text, finish_reason="stop")
                span.set_attribute("gen_ai.output.messages", said)

        yield told


@contextmanager
def node(
    spans: "Spans | None", name: str, attempt: int, request: AnswerRequest | None
) -> Iterator[Told]:
    """The span of one run of a node; tell it what the node gave."""
    if spans is None:
        yield lambda facts, update: None
        return
    given: dict[str, Any] = {"callslip.node.name": name, "callslip.node.attempt": attempt}
    if name in RETRIEVALS and request is not None:
        given["gen_ai.operation.name"] = "retrieval"
        given["gen_ai.data_source.id"] = request.collection
    with spans.span(name, given) as span:

        def told(facts: Mapping[str, Any], update: Mapping[str, Any]) -> None:
            known = {k: v for k, v in facts.items() if _is_plain(v)}
            span.set_attributes({f"callslip.node.{key}": value for key, value in known.items()})
            response = update.get("response")
            if spans.text and isinstance(response, SearchResponse):
                span.set_attribute("gen_ai.retrieval.query.text", response.query)
                span.set_attribute("gen_ai.retrieval.documents", _documents(response))

        yield told


@contextmanager
def chat(
    spans: "Spans | None", model: str, instruction: str, content: str, max_tokens: int
) -> Iterator[Callable[[Completion[M]], None]]:
    """The span of one call of a language model; tell it what was answered."""
    if spans is None:
        yield lambda found: None
        return
    given: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",  # whose protocol the server speaks
        "gen_ai.request.model": model,
        "gen_ai.request.max_tokens": max_tokens,
    }
    if spans.text:
        given["gen_ai.system_instructions"] = json.dumps([_part(instruction)], ensure_ascii=False)
        given["gen_ai.input.messages"] = _messages("user", content)
    with spans.span(f"chat {model}", given, calls=True) as span:

        def told(found: Completion[M]) -> None:
            span.set_attributes(
                {
                    "gen_ai.response.model": found.model,
                    "gen_ai.response.finish_reasons": [found.finish_reason],
                    **_usage(found.usage.input_tokens, found.usage.output_tokens),
                }
            )
            if spans.text:
                text = found.value.model_dump_json()
                said = _messages("assistant", text, finish_reason=found.finish_reason)
                span.set_attribute("gen_ai.output.messages", said)

        try:
            yield told
        except BadReply as error:
            span.set_attributes(_usage(error.input_tokens, error.output_tokens))
            raise


def _usage(read: int, written: int) -> dict[str, int]:
    return {"gen_ai.usage.input_tokens": read, "gen_ai.usage.output_tokens": written}


def _is_plain(value: Any) -> bool:
    """Whether it is a number, a name or an id, or a few of one kind."""
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
    """A message in the JSON of the conventions."""
    return json.dumps([{"role": role, "parts": [_part(text)], **more}], ensure_ascii=False)


def _documents(response: SearchResponse) -> str:
    hits = [{"id": h.chunk_id, "score": h.score, "content": h.text} for h in response.hits]
    return json.dumps(hits, ensure_ascii=False)
