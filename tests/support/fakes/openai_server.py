"""A server on loopback that speaks OpenAI's chat protocol by a script, with every fault of one.

    with OpenAIServer() as server:
        server.script += [fails(500), reply({"answer": "20 days"})]

Each request takes the next entry of the script, a `Sent` or a function of what was asked; when
it is used up, `server.always`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
from loopback import LoopbackServer
from pydantic import BaseModel

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as it came."""

    path: str
    headers: httpx.Headers
    body: dict[str, Any]

    @property
    def instruction(self) -> str:
        """The system's message."""
        return str(self.body["messages"][0]["content"])

    @property
    def content(self) -> str:
        """The user's message."""
        return str(self.body["messages"][1]["content"])


@dataclass(frozen=True)
class Sent:
    """An answer: sent after `wait` seconds, its last `missing` bytes never.

    `pace` are seconds before each byte of the body, or of the head where `slow_head` says so. A
    body is repeated `times` over.
    """

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0
    pace: float = 0.0
    slow_head: bool = False
    missing: int = 0
    times: int = 1


Scripted = Sent | Callable[[ReceivedRequest], Sent]


def reply(
    content: str | dict[str, Any] | list[Any] | BaseModel | None,
    *,
    usage: tuple[int, int] | None = (100, 20),
    finish: str = "stop",
    refusal: str | None = None,
    model: str = "small-2026",
) -> Sent:
    """A completion; what is no text is written as JSON. `usage` are tokens read and written."""
    if isinstance(content, BaseModel):
        content = content.model_dump_json()
    elif isinstance(content, dict | list):
        content = json.dumps(content, ensure_ascii=False)
    message = {"role": "assistant", "content": content, "refusal": refusal}
    answer_text: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if usage is not None:
        answer_text["usage"] = {
            "prompt_tokens": usage[0],
            "completion_tokens": usage[1],
            "total_tokens": sum(usage),
        }
    return raw(json.dumps(answer_text).encode())


def echo(requests: ReceivedRequest) -> Sent:
    """What the user's message says, as the reply."""
    return reply(requests.content)


def refuses() -> Sent:
    """A refusal in the protocol's own field."""
    return reply(None, refusal="I cannot help with that.")


def fails(status: int, *, code: str = "no", retry_after: float | None = None) -> Scripted:
    """An error that quotes the prompt, as servers do."""

    def failure(requests: ReceivedRequest) -> Sent:
        answer_text = {"error": {"message": f"no: {requests.content}", "code": code}}
        headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
        return Sent(json.dumps(answer_text).encode(), status, headers)

    return failure


def raw(body: bytes, **headers: str) -> Sent:
    """These bytes, whatever they are."""
    return Sent(body, headers=headers)


def slow(seconds: float, then: Sent) -> Sent:
    """The same after a while without a byte."""
    return replace(then, wait=seconds)


def trickle(then: Sent, *, pace: float = 0.1, head: bool = False) -> Sent:
    """The same byte by byte; `head`: status line and headers too."""
    return replace(then, pace=pace, slow_head=head)


def cut_off(then: Sent, missing: int = 10) -> Sent:
    """The same, but the connection ends that many bytes before the body does."""
    return replace(then, missing=missing)


def huge(megabytes: int = 100) -> Sent:
    """A body of so many MB, made as it is sent."""
    return Sent(b" " * MEGABYTE, times=megabytes)


class OpenAIServer(LoopbackServer):
    """`asked` is every request, `script` what is answered, `connections` how many there were."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.script: list[Scripted] = []
        self.always: Scripted = fails(500, code="script_is_used_up")
        self.requests: list[ReceivedRequest] = []
        self.connections = 0
        self.bytes_sent = 0

    @property
    def url(self) -> str:
        """As `llm.base_url` takes it."""
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: OpenAIServer
    protocol_version = "HTTP/1.1"  # connections are kept

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        requests = ReceivedRequest(self.path, httpx.Headers(dict(self.headers)), body)
        self.server.requests.append(requests)
        if self.path.partition("?")[0] != "/v1/chat/completions":
            self._send(requests, fails(404, code="not_found"))
            return
        script = self.server.script
        self._send(requests, script.pop(0) if script else self.server.always)

    def _send(self, requests: ReceivedRequest, scripted: Scripted) -> None:
        sent = scripted if isinstance(scripted, Sent) else scripted(requests)
        if self.server.ending.wait(sent.wait):
            return
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(sent.body) * sent.times),
            **sent.headers,
        }
        lines = [f"HTTP/1.1 {sent.status} Said", *(f"{k}: {v}" for k, v in headers.items())]
        head = "\r\n".join([*lines, "", ""]).encode()
        self._write(head, sent.pace if sent.slow_head else 0)
        if sent.missing:
            self.close_connection = True
        for _ in range(sent.times):
            self._write(sent.body[: len(sent.body) - sent.missing], sent.pace)

    def _write(self, content: bytes, pace: float) -> None:
        if not pace:
            self.wfile.write(content)
            self.server.bytes_sent += len(content)
            return
        for n in range(len(content)):
            if self.server.ending.wait(pace):
                return
            self.wfile.write(content[n : n + 1])
            self.wfile.flush()
            self.server.bytes_sent += 1

    def log_message(self, *_: object) -> None:
        """Say nothing."""
