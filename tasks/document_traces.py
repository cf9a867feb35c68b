"""The trace context of each document that is being ingested, in the broker.

The fair queue sends documents of other requests than the present one, and the sweep sends them
without any request: so the context of the request that submitted a document waits in the broker.
Without a collector nothing is stored, and steps have no trace context.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import redis

from callslip import trace_context
from callslip.tasks.composition import Context

EXPIRES_SECONDS = 86_400


def remember(context: Context, document_id: str) -> None:
    """Store the present trace context, or a new one, as that of a document."""
    if _is_on(context):
        traceparent = trace_context.current() or trace_context.new()
        with suppress(redis.RedisError):
            context.broker.set(_key(document_id), traceparent, ex=EXPIRES_SECONDS, nx=True)


def forget(context: Context, document_id: str) -> None:
    """Delete the trace context of a document that has ended."""
    if _is_on(context):
        with suppress(redis.RedisError):
            context.broker.delete(_key(document_id))


@contextmanager
def of(context: Context, document_id: str) -> Iterator[None]:
    """Run the block, which sends the document, in the document's trace context."""
    header = None
    if _is_on(context):
        with suppress(redis.RedisError):
            value = context.broker.get(_key(document_id))
            header = trace_context.valid(value.decode() if isinstance(value, bytes) else value)
    with trace_context.within(header):
        yield


def _is_on(context: Context) -> bool:
    return context.spans is not None and not context.local


def _key(document_id: str) -> str:
    return f"{trace_context.HEADER}:{document_id}"
