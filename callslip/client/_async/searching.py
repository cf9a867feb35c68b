"""Methods for searches, answers, conversations, feedback and traces."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal

from callslip.client import models
from callslip.client._async.transport import AsyncTransport
from callslip.client.requests import path_of, without_none
from callslip.client.responses import parse_answer
from callslip.errors import PermanentError
from callslip.vocabulary import Fusion, Metric, ParentStrategy, Verdict


class Searching(AsyncTransport):
    """The endpoints for searches and answers."""

    async def search(
        self,
        collection: str,
        query: str | None = None,
        *,
        query_embedding: list[float] | None = None,
        tenant: str | None = None,
        top: int | None = None,
        alpha: float | None = None,
        fusion: Fusion | None = None,
        method: Metric | None = None,
        vector_name: str | None = None,
        include_vector: bool | None = None,
        include_boxes: bool | None = None,
        horizon: float | None = None,
        operation_level: int | Literal["every"] | None = None,
        parent_strategy: ParentStrategy | None = None,
        having_all: Mapping[str, Any] | None = None,
        having_any: Mapping[str, Any] | None = None,
        ranking: models.Ranking | Mapping[str, Any] | None = None,
        replay: str | None = None,
        explain: bool | None = None,
        as_of: str | None = None,
        count_not_in_force: bool | None = None,
    ) -> models.SearchResponse:
        """Search for the best passages; docs/filters.md defines every parameter."""
        body = without_none(
            collection=collection,
            query=query,
            query_embedding=query_embedding,
            tenant=tenant,
            top=top,
            alpha=alpha,
            fusion=fusion,
            method=method,
            vector_name=vector_name,
            include_vector=include_vector,
            include_boxes=include_boxes,
            horizon=horizon,
            operation_level=operation_level,
            parent_strategy=parent_strategy,
            having_all=having_all,
            having_any=having_any,
            ranking=ranking,
            replay=replay,
            explain=explain,
            as_of=as_of,
            count_not_in_force=count_not_in_force,
        )
        return await self._request_model(
            models.SearchResponse, "POST", "/v1/search", json=body, repeatable=True
        )

    async def answer(
        self,
        collection: str,
        question: str,
        *,
        tenant: str | None = None,
        thread_id: str | None = None,
        user: str | None = None,
        as_of: str | None = None,
        having_all: Mapping[str, Any] | None = None,
        having_any: Mapping[str, Any] | None = None,
        model: bool | None = None,
    ) -> models.Answer:
        """Get an answer with citations; without one, `nearest` has the nearest passages.

        An answer may cost tokens and belongs to a conversation: the client never sends it twice.
        """
        body = without_none(
            collection=collection,
            question=question,
            tenant=tenant,
            thread_id=thread_id,
            user=user,
            as_of=as_of,
            having_all=having_all,
            having_any=having_any,
            model=model,
        )
        return await self._request_model(models.Answer, "POST", "/v1/answer", json=body)

    async def answer_stream(
        self,
        collection: str,
        question: str,
        *,
        tenant: str | None = None,
        thread_id: str | None = None,
        user: str | None = None,
        as_of: str | None = None,
        having_all: Mapping[str, Any] | None = None,
        having_any: Mapping[str, Any] | None = None,
        model: bool | None = None,
        timeout: float | None = None,
    ) -> AsyncGenerator[models.NodeMessage | models.SentenceMessage | models.Answer, None]:
        """Yield a message for each node of the graph after its run, sentences, and the answer.

        A sentence comes as soon as the validator has approved it.

        Raises ServerDown if the client waits longer than `timeout` seconds in all; the default
        is the timeout of the client.
        """
        seconds = self._timeout if timeout is None else timeout
        body = without_none(
            collection=collection,
            question=question,
            tenant=tenant,
            thread_id=thread_id,
            user=user,
            as_of=as_of,
            having_all=having_all,
            having_any=having_any,
            model=model,
        )
        async for event in self.request_events("POST", "/v1/answer", json=body, timeout=seconds):
            if event.kind == "node":
                yield parse_answer(models.NodeMessage, event.json(), "POST /v1/answer")
            elif event.kind == "sentence":
                yield parse_answer(models.SentenceMessage, event.json(), "POST /v1/answer")
            elif event.kind == "answer":
                yield parse_answer(models.Answer, event.json(), "POST /v1/answer")
                return
        raise PermanentError(
            "the stream ended before the answer", hint="Ask again; `callslip doctor` looks at all."
        )

    async def get_conversation(
        self, collection: str, thread_id: str, *, tenant: str | None = None
    ) -> models.Conversation:
        """Get the questions and answers of a conversation."""
        path = path_of(
            "/v1/collections/{collection}/conversations/{thread_id}",
            collection=collection,
            thread_id=thread_id,
        )
        return await self._request_model(
            models.Conversation, "GET", path, params=without_none(tenant=tenant)
        )

    async def delete_conversation(
        self, collection: str, thread_id: str, *, tenant: str | None = None
    ) -> models.Conversation:
        """Delete a conversation, and return its last state."""
        path = path_of(
            "/v1/collections/{collection}/conversations/{thread_id}",
            collection=collection,
            thread_id=thread_id,
        )
        return await self._request_model(
            models.Conversation, "DELETE", path, params=without_none(tenant=tenant)
        )

    async def give_feedback(
        self,
        trace_id: str,
        verdict: Verdict,
        *,
        chunk_ids: list[str] | None = None,
        citations: list[int] | None = None,
        user: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.Feedback:
        """Record which passages helped; a repetition changes nothing."""
        body = without_none(
            trace_id=trace_id,
            verdict=verdict,
            chunk_ids=chunk_ids,
            citations=citations,
            user=user,
            idempotency_key=idempotency_key,
        )
        return await self._request_model(
            models.Feedback, "POST", "/v1/feedback", json=body, repeatable=True
        )

    async def withdraw_feedback(self, feedback_id: str) -> models.Feedback:
        """Withdraw a feedback."""
        path = path_of("/v1/feedback/{feedback_id}", feedback_id=feedback_id)
        return await self._request_model(models.Feedback, "DELETE", path)

    async def get_trace(self, trace_id: str) -> models.TraceMessage:
        """Get the trace of a search: how the server ranked its hits."""
        path = path_of("/debug/trace/{trace_id}", trace_id=trace_id)
        return await self._request_model(models.TraceMessage, "GET", path)

    async def get_answer(
        self, trace_id: str, *, tenant: str | None = None
    ) -> models.RecordedAnswer:
        """Get an answer as it was made, with its citations and the documents that it cites."""
        path = path_of("/v1/answers/{trace_id}", trace_id=trace_id)
        params = without_none(tenant=tenant)
        return await self._request_model(models.RecordedAnswer, "GET", path, params=params)
