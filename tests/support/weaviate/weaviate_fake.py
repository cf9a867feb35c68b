"""A server for tests that speaks Weaviate's protocol, written on its client's own protocol files.

    python weaviate_fake.py JOURNAL HTTP_PORT GRPC_PORT

It is no mock: filters are evaluated, BM25 is computed, vectors are compared, what Weaviate refuses
is refused, and it passes the suite that a real server passes. It keeps a journal of what it
acknowledged, so that it can be killed at any moment and started again. While a file `starting` is
beside the journal, it answers as Weaviate does between the election of a leader and its being
ready: it has no class, with the status 200.
"""

import base64
import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
from weaviate.proto.v1 import batch_delete_pb2, batch_pb2, health_weaviate_pb2, weaviate_pb2_grpc
from weaviate_calls import CALLS
from weaviate_engine import Engine, Json, Shard, check_tenant_name
from weaviate_filters import Refused

VERSION = "1.39.0"
MESSAGE_BYTES = 104_858_000

_WRITES = {
    "BatchObjects": batch_pb2.BatchObjectsRequest,
    "BatchDelete": batch_delete_pb2.BatchDeleteRequest,
}

Answer = tuple[int, Any]
"""Status and body."""


class Missing(Exception):
    """There is no such thing: status 404."""


class NotReady(Exception):
    """The server does not know its classes yet: status 503."""


class Server:
    """The engine behind both interfaces, one call at a time."""

    def __init__(self, journal: Path) -> None:
        self._engine = Engine()
        self._lock = threading.Lock()
        self._starting = journal.with_name("starting")
        for line in journal.read_text().splitlines() if journal.exists() else []:
            self._replay(json.loads(line))
        self._journal = journal.open("a")

    def call(self, method: str, request: Any) -> Any:
        """Answer a call over gRPC; Refused."""
        with self._lock:
            reply = CALLS[method](self._seen(), request)
            if method in _WRITES:
                self._note([method, base64.b64encode(request.SerializeToString()).decode()])
            return reply

    def rest(self, verb: str, path: str, body: Any) -> Answer:
        """Answer a request over HTTP."""
        with self._lock:
            try:
                answer = self._rest(verb, path.split("/")[2:], body)
            except Missing:
                return 404, None
            except NotReady:
                return 503, None
            except Refused as error:
                return 422, {"error": [{"message": str(error)}]}
            if verb not in ("GET", "HEAD"):
                self._note([verb, path, body])
            return 200, answer

    def _seen(self) -> Engine:
        return Engine() if self._starting.exists() else self._engine

    def _note(self, entry: list[Any]) -> None:
        self._journal.write(json.dumps(entry) + "\n")
        self._journal.flush()

    def _replay(self, entry: list[Any]) -> None:
        if entry[0] in _WRITES:
            request = _WRITES[entry[0]].FromString(base64.b64decode(entry[1]))
            CALLS[entry[0]](self._engine, request)
        else:
            verb, path, body = entry
            self._rest(verb, path.split("/")[2:], body)

    def _rest(self, verb: str, path: list[str], body: Any) -> Any:
        match verb, path:
            case "GET", [".well-known", "ready"] if self._starting.exists():
                raise NotReady
            case "GET", [".well-known", "ready" | "live"]:
                return None
            case "GET", ["meta"]:
                return {"version": VERSION, "grpcMaxMessageSize": MESSAGE_BYTES, "modules": {}}
            case "GET", ["schema"]:
                return {"classes": [each.definition for each in self._seen().classes.values()]}
            case "POST", ["schema"]:
                self._engine.create(body)
                return self._definition(body["class"])
            case "DELETE", ["schema", name]:
                self._engine.classes.pop(name, None)
                return None
            case "GET", ["schema", name]:
                return self._definition(name)
            case "POST", ["schema", name, "properties"]:
                self._definition(name)
                self._engine.add_property(name, body)
                return body
            case _, ["schema", name, "tenants" | "shards" as what, *rest]:
                self._definition(name)
                return self._parts(verb, name, what, rest, body)
        raise Missing

    def _parts(self, verb: str, name: str, what: str, rest: list[str], body: Any) -> Any:
        at = self._engine.find(name)
        if what == "tenants" and not at.tenants:
            raise Refused(f"multi-tenancy is not enabled for class {name!r}")
        match what, verb, rest:
            case "tenants", "POST", []:
                for each in body:
                    check_tenant_name(each["name"])
                    at.shards.setdefault(each["name"], Shard())
                return body
            case "tenants", "DELETE", []:
                for tenant in body:
                    at.shards.pop(tenant, None)
                return None
            case "tenants", "GET" | "HEAD", [tenant] if tenant in at.shards:
                return {"name": tenant, "activityStatus": "HOT"}
            case "shards", "GET", []:
                return [
                    {"name": shard or "one", "status": _status(each), "vectorQueueSize": 0}
                    for shard, each in at.shards.items()
                ]
            case "shards", "PUT", [shard]:
                at.shards["" if shard == "one" else shard].read_only = body["status"] == "READONLY"
                return body
        raise Missing

    def _definition(self, name: str) -> Json:
        if name not in self._seen().classes:
            raise Missing
        return self._engine.classes[name].definition


def _status(shard: Shard) -> str:
    return "READONLY" if shard.read_only else "READY"


class Servicer(weaviate_pb2_grpc.WeaviateServicer):  # type: ignore[misc]
    """The gRPC interface."""

    def __init__(self, server: Server) -> None:
        for method in CALLS:
            setattr(self, method, self._answering(server, method))

    def _answering(self, server: Server, method: str) -> Any:
        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            try:
                return server.call(method, request)
            except Refused as error:
                context.abort(grpc.StatusCode.UNKNOWN, str(error))

        return answer


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            sent = json.loads(self.rfile.read(length)) if length else None
            status, body = server.rest(self.command, self.path.partition("?")[0], sent)
            text = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):
                return self._answer
            raise AttributeError(name)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    return Handler


def _health(_: Any, __: grpc.ServicerContext) -> Any:
    return health_weaviate_pb2.WeaviateHealthCheckResponse(status=1)


def main(journal: str, http_port: str, grpc_port: str) -> None:
    """Serve until killed."""
    server = Server(Path(journal))
    options = [
        ("grpc.max_receive_message_length", MESSAGE_BYTES),
        ("grpc.max_send_message_length", MESSAGE_BYTES),
        ("grpc.so_reuseport", 0),
    ]
    calls = grpc.server(ThreadPoolExecutor(4), options=options)
    weaviate_pb2_grpc.add_WeaviateServicer_to_server(Servicer(server), calls)
    check = grpc.unary_unary_rpc_method_handler(
        _health,
        request_deserializer=health_weaviate_pb2.WeaviateHealthCheckRequest.FromString,
        response_serializer=health_weaviate_pb2.WeaviateHealthCheckResponse.SerializeToString,
    )
    calls.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": check})]
    )
    calls.add_insecure_port(f"127.0.0.1:{grpc_port}")
    calls.start()
    ThreadingHTTPServer(("127.0.0.1", int(http_port)), _handler(server)).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
