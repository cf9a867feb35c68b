"""A collector on loopback that takes spans over OTLP/HTTP and keeps them."""

import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from loopback import LoopbackServer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue


@dataclass(frozen=True)
class Kept:
    """A span as it came; `parent` is empty for the first of a trace."""

    name: str
    trace_id: str
    span_id: str
    parent: str
    kind: int
    status: int
    attributes: dict[str, Any]
    service: dict[str, Any] = field(default_factory=dict)


class OtlpReceiver(LoopbackServer):
    """`bodies` are requests as they came, `paths` where; it answers `status` after `wait`."""

    daemon_threads = True

    def __init__(self, status: int = 200, wait: float = 0.0) -> None:
        super().__init__(_Handler)
        self.status, self.wait = status, wait
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.answer_headers: dict[str, str] = {}

    @property
    def url(self) -> str:
        """As `telemetry.otlp_endpoint` takes it."""
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def spans(self) -> list[Kept]:
        """All of them, in the order in which they began."""
        kept = []
        for body in self.bodies:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                service = {a.key: _value(a.value) for a in resource.resource.attributes}
                for scope in resource.scope_spans:
                    kept += [(s.start_time_unix_nano, _kept(s, service)) for s in scope.spans]
        return [span for _, span in sorted(kept, key=lambda pair: pair[0])]

    def eventually(self, count: int, seconds: float = 10.0) -> list[Kept]:
        """The spans, when there are so many."""
        until = time.monotonic() + seconds
        while len(self.spans) < count and time.monotonic() < until:
            time.sleep(0.02)
        return self.spans


class _Handler(BaseHTTPRequestHandler):
    server: OtlpReceiver

    def do_POST(self) -> None:
        self.server.paths.append(self.path)
        self.server.headers.append(dict(self.headers))
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.ending.wait(self.server.wait):
            return
        self.send_response(self.server.status)
        for name, value in self.server.answer_headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _kept(span: Any, service: dict[str, Any]) -> Kept:
    return Kept(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.kind,
        span.status.code,
        {a.key: _value(a.value) for a in span.attributes},
        service,
    )


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None
