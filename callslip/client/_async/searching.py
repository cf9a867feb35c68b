"""Searches, answers, and what is said of them."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal

from callslip.client import models
from callslip.client._async.transport import AsyncTransport
from callslip.client.wire import given, path_of, understood
from callslip.client.words import Fusion, Metric, ParentStrategy, Verdict
from callslip.errors import PermanentError


class Searching(AsyncTransport):
    """What is asked."""

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
        horizon: float | None = None,
        operation_level: int | Literal["every"] | None = None,
        parent_strategy: ParentStrategy | None = None,
        having_all: Mapping[str, Any] | None = None,
        having_any: Mapping[str, Any] | None = None,
        ranking: models.Ranking | Mapping[str, Any] | None = None,
        replay: str | None = None,
        explain: bool | None = None,
        as_of: str | None = None,
    ) -> models.SearchResponse:
        """The passages that answer best; docs/filters.md defines every parameter."""
        body = given(
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
            horizon=horizon,
            operation_level=operation_level,
            parent_strategy=parent_strategy,
            having_all=having_all,
            having_any=having_any,
            ranking=ranking,
            replay=replay,
            explain=explain,
            as_of=as_of,
        )
        return await self._asked(
            models.SearchResponse, "POST", "/v1/search", json=body, repeatable=True
        )

    async def answer(
        self,
        collection: str,
        question: str,
        *,
        tenant: str | None = None,
        thread_id: str | None = None,
        as_of: str | None = None,
        having_all: Mapping[str, Any] | None = None,
        having_any: Mapping[str, Any] | None = None,
        model: bool | None = None,
    ) -> models.Answer:
        """An answer with citations, or with what came near where nothing answers it.

        It may cost tokens and is a turn of its conversation, so it is not asked twice.
        """
        body = given(
            collection=collection,
            question=question,
            tenant=tenant,
            thread_id=thread_id,
            as_of=as_of,
            having_all=having_all,
            having_any=having_any,
            model=model,
        )
        return await self._asked(models.Answer, "POST", "/v1/answer", json=body)

    async def answer_stream(
        self,
        collection: str,
        question: str,
        *,
        tenant: str | None = None,
        thread_id: str | None = None,
        as_of: str | None = None,
        having_all: Mapping[str, Any] | None = None,
        having_any: Mapping[str, Any] | None = None,
        model: bool | None = None,
        timeout: float | None = None,
    ) -> AsyncGenerator[models.NodeMessage | models.Answer, None]:
        """Each node of the graph when it has run, then the answer.

        DeskDown where it is waited for longer than `timeout` seconds in all; left out, as long as
        any answer of this client.
        """
        seconds = self._timeout if timeout is None else timeout
        body = given(
            collection=collection,
            question=question,
            tenant=tenant,
            thread_id=thread_id,
            as_of=as_of,
            having_all=having_all,
            having_any=having_any,
            model=model,
        )
        async for event in self.request_events("POST", "/v1/answer", json=body, timeout=seconds):
            if event.kind == "node":
                yield understood(models.NodeMessage, event.json(), "POST /v1/answer")
            elif event.kind == "answer":
                yield understood(models.Answer, event.json(), "POST /v1/answer")
                return
        raise PermanentError(
            "the stream ended before the answer", hint="Ask again; `callslip doctor` looks at all."
        )

    async def get_conversation(
        self, collection: str, thread_id: str, *, tenant: str | None = None
    ) -> models.Conversation:
        """What was asked under a `thread_id`, and what was answered."""
        path = path_of(
            "/v1/collections/{collection}/conversations/{thread_id}",
            collection=collection,
            thread_id=thread_id,
        )
        return await self._asked(models.Conversation, "GET", path, params=given(tenant=tenant))

    async def delete_conversation(
        self, collection: str, thread_id: str, *, tenant: str | None = None
    ) -> models.Conversation:
        """Forget a conversation; what it was."""
        path = path_of(
            "/v1/collections/{collection}/conversations/{thread_id}",
            collection=collection,
            thread_id=thread_id,
        )
        return await self._asked(models.Conversation, "DELETE", path, params=given(tenant=tenant))

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
        """Say what helped; the same again changes nothing."""
        body = given(
            trace_id=trace_id,
            verdict=verdict,
            chunk_ids=chunk_ids,
            citations=citations,
            user=user,
            idempotency_key=idempotency_key,
        )
        return await self._asked(
            models.Feedback, "POST", "/v1/feedback", json=body, repeatable=True
        )

    async def withdraw_feedback(self, feedback_id: str) -> models.Feedback:
        """Take it back."""
        path = path_of("/v1/feedback/{feedback_id}", feedback_id=feedback_id)
        return await self._asked(models.Feedback, "DELETE", path)

    async def get_trace(self, trace_id: str) -> models.TraceMessage:
        """How a search came to its hits."""
        path = path_of("/debug/trace/{trace_id}", trace_id=trace_id)
        return await self._asked(models.TraceMessage, "GET", path)
