"""Spans of OpenTelemetry, sent only to the collector of `telemetry.otlp_endpoint`.

This module is imported only if that setting is present. The tracer provider is not the global one,
so other libraries add no spans and no environment variable turns it on. The exporter is not the
SDK's, because that one reads headers, certificates and a plugin for credentials from environment
variables that may be meant for another collector
(`opentelemetry/exporter/otlp/proto/http/_common`).
"""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic, time_ns
from typing import Literal

import httpx
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    get_current_span,
    set_span_in_context,
    use_span,
)
from opentelemetry.util.types import AttributeValue

from callslip import __version__, trace_context
from callslip.config.sections.telemetry import TelemetrySettings
from callslip.errors import CallslipError
from callslip.http.transport import BoundedTransport, direct

Attributes = Mapping[str, AttributeValue]

Kind = Literal["INTERNAL", "SERVER", "CLIENT", "CONSUMER"]
"""Kinds of spans, as `SpanKind` names them."""

SEND_SECONDS = 2.0
"""Seconds to send a batch to the collector, and to send the last spans when the process ends."""

EVERY_SECONDS = 1.0

MOST_WAITING = 2048
"""The most spans that wait; the oldest are dropped while the collector does not accept them."""

MOST_IN_A_BATCH = 256

log = logging.getLogger(__name__)


class Spans:
    """Makes spans. Threads may share an instance, processes may not.

    Making a span never waits for the collector and never fails.
    """

    def __init__(self, settings: TelemetrySettings) -> None:
        """`settings` must have `otlp_endpoint`; its `text` allows text in spans."""
        self.text = settings.text
        unmeasured = NoOpMeterProvider()
        self._exporter = _Exporter(_traces(settings.otlp_endpoint or ""))
        self._processor = BatchSpanProcessor(
            self._exporter,
            max_queue_size=MOST_WAITING,
            schedule_delay_millis=EVERY_SECONDS * 1000,
            max_export_batch_size=MOST_IN_A_BATCH,
            export_timeout_millis=SEND_SECONDS * 1000,
            meter_provider=unmeasured,
        )
        provider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=Resource(
                {"service.name": settings.service_name, "service.version": __version__}
            ),
            shutdown_on_exit=False,
            meter_provider=unmeasured,
        )
        provider.add_span_processor(self._processor)
        self._tracer = provider.get_tracer("callslip", __version__)

    @contextmanager
    def span(self, name: str, attributes: Attributes, kind: Kind = "INTERNAL") -> Iterator[Span]:
        """Run the block in a span within `trace_context.current()`, or in a new trace.

        In the block the span is the trace context. If the block raises an error, the span has the
        error's name, and nothing else of the error.
        """
        span = self._tracer.start_span(name, _present(), SpanKind[kind], attributes)
        with (
            trace_context.within(_traceparent(span)),
            use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False),
        ):
            try:
                yield span
            except BaseException as error:
                name = error.slug if isinstance(error, CallslipError) else type(error).__name__
                span.set_attribute("error.type", name)
                span.set_status(Status(StatusCode.ERROR))
                raise

    def waited(self, name: str, attributes: Attributes, since: float) -> str:
        """Record a span of a message that waited in a queue from `since`, Unix time, until now.

        Returns the span's `traceparent`.
        """
        start = min(int(since * 1e9), time_ns())
        span = self._tracer.start_span(
            name, _present(), SpanKind.CONSUMER, attributes, start_time=start
        )
        span.end()
        return _traceparent(span)

    def annotate(self, attributes: Attributes) -> None:
        """Add attributes to the current span."""
        get_current_span().set_attributes(attributes)

    def trace_id(self) -> str | None:
        """Return the id of this thread's trace in the format of W3C's `traceparent`, or None."""
        context = get_current_span().get_span_context()
        return f"{context.trace_id:032x}" if context.is_valid else None

    def flush(self) -> None:
        """Send all waiting spans now."""
        self._processor.force_flush()

    def close(self) -> None:
        """Send the waiting spans, for about `SEND_SECONDS`."""
        self._exporter.end_by(monotonic() + SEND_SECONDS)
        self._processor.shutdown()  # type: ignore[no-untyped-call]


class _Exporter(SpanExporter):
    def __init__(self, url: httpx.URL) -> None:
        self._url = url
        self._at = url.copy_with(userinfo=b"", query=None)
        transport = BoundedTransport(None, direct, whole=False)
        self._http = httpx.Client(transport=transport, trust_env=False)
        self._until = math.inf
        self._failing = False

    def end_by(self, moment: float) -> None:
        """Drop spans that are not sent by `moment`, on the monotonic clock."""
        self._until = moment

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        problem = self._post(encode_spans(spans).SerializeToString())
        if problem and not self._failing:
            log.warning("spans are lost until %s takes them: %s", self._at, problem)
        self._failing = bool(problem)
        return SpanExportResult.FAILURE if problem else SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self._http.close()

    def _post(self, content: bytes) -> str | None:
        """Send spans; return the problem, or None."""
        seconds = min(SEND_SECONDS, self._until - monotonic())
        if seconds <= 0:
            return "the process ends"
        headers = {"Content-Type": "application/x-protobuf"}
        try:
            with self._http.stream(
                "POST", self._url, content=content, headers=headers, timeout=seconds
            ) as response:
                return None if response.is_success else f"status {response.status_code}"
        except httpx.HTTPError as error:
            return type(error).__name__


def _present() -> Context:
    """Return the trace context as the parent of a new span; an empty one begins a trace."""
    traceparent = trace_context.current()
    if traceparent is None:
        return Context()
    parent = SpanContext(
        int(traceparent[3:35], 16),
        int(traceparent[36:52], 16),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
    return set_span_in_context(NonRecordingSpan(parent), Context())


def _traceparent(span: Span) -> str:
    context = span.get_span_context()
    if not context.is_valid:  # OTEL_SDK_DISABLED
        return trace_context.current() or trace_context.new()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-01"


def _traces(endpoint: str) -> httpx.URL:
    """Return the address for traces: the endpoint, with `/v1/traces` added if it lacks this end."""
    url = httpx.URL(endpoint)
    path = url.path.rstrip("/")
    return url.copy_with(path=path if path.endswith("/v1/traces") else f"{path}/v1/traces")
