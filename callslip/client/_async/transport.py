"""Sends requests with retries and timeouts, and reads responses and streams."""

import copy
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
import httpx
from pydantic import BaseModel, SecretStr

from callslip import __version__
from callslip.client import events, requests, responses
from callslip.client.deadlines import AsyncDeadline
from callslip.client.line_reader import LineReader
from callslip.client.retries import Pauses, Retries
from callslip.errors import CallslipError, ServerDown

T = TypeVar("T", bound=BaseModel)


class AsyncTransport:
    """A pool of connections to one server.

    Every call raises the error of the server's response as its class of `callslip.errors`, and
    ServerDown if the server does not respond. The `request_…` methods take a path and return
    parsed JSON: they are for endpoints that have no method of their own."""

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | SecretStr | None = None,
        timeout: float = 120.0,
        retries: Retries | None = None,
        connections: int = 10,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        """`key` is the server's api.key; without `url` the environment has the URL and the key.

        `timeout` is in seconds: it bounds each part of a request, and the whole response from the
        end of the request on. `http` is a client of the caller's, for proxies or certificates;
        `aclose` closes it too.
        """
        self._address = requests.ServerAddress.of(url, key)
        self._timeout = timeout
        self._retries = retries or Retries()
        self._http = http or httpx.AsyncClient(
            timeout=timeout,
            trust_env=False,
            verify=self.url.startswith("https:"),  # reading certificates takes 15 ms
            limits=httpx.Limits(
                max_connections=connections,
                max_keepalive_connections=connections,
                keepalive_expiry=requests.KEEPALIVE_SECONDS,
            ),
            headers={"User-Agent": f"callslip/{__version__}"},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    @property
    def url(self) -> str:
        """The base URL of the server, without a slash at its end."""
        return self._address.url

    @property
    def has_key(self) -> bool:
        """Whether the client sends a key."""
        return self._address.key is not None

    def with_key(self, key: str | SecretStr | None) -> Self:
        """Return a client that shares these connections and sends another key, or none."""
        other = copy.copy(self)
        other._address = requests.ServerAddress(self.url, requests.checked_key(key))
        return other

    async def request_json(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        content: Any = None,
        files: Any = None,
        data: Mapping[str, str] | None = None,
        content_type: str | None = None,
        if_match: str | None = None,
        repeatable: bool | None = None,
        also: tuple[int, ...] = (),
    ) -> Any:
        """Send a request and return its JSON; statuses in `also` are not raised as errors.

        `repeatable` states that a second sending is harmless; without it the HTTP method decides.
        """
        reply = await self._replied(
            method,
            path,
            repeatable=repeatable,
            also=also,
            params=params,
            json=json,
            content=content,
            files=files,
            data=data,
            headers=requests.without_none(
                **{"Content-Type": content_type, "If-Match": if_match and f'"{if_match}"'}
            ),
        )
        return reply.json()

    async def request_text(self, path: str) -> str:
        """GET a response and decode it as UTF-8."""
        return (await self.request_bytes(path)).decode("utf-8", "replace")

    async def request_bytes(self, path: str, *, params: Mapping[str, Any] | None = None) -> bytes:
        """GET a response and return its body."""
        return (await self._replied("GET", path, params=params)).content

    async def request_lines(
        self, path: str, *, params: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[str, None]:
        """GET a response and yield each line of it when it arrives."""
        async with self._opened("GET", path, repeatable=True, params=params) as response:
            async for line in self._lines(response):
                yield line

    async def request_events(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        repeatable: bool | None = None,
        timeout: float | None = None,
    ) -> AsyncGenerator[events.ServerEvent, None]:
        """Yield server-sent events when they arrive; an event of the type `error` is raised.

        Raises ServerDown if the client waits longer than `timeout` seconds for them in all.
        """
        headers = {"Accept": events.EVENT_STREAM}
        async with self._opened(
            method, path, repeatable=repeatable, json=json, headers=headers
        ) as response:
            reader = events.EventReader()
            async for line in self._lines(response, math.inf if timeout is None else timeout):
                event = reader.read(line)
                if event is None:
                    continue
                if event.kind == "error":
                    raise events.error_of_event(event)
                yield event

    async def resumed_events(
        self, path: str, after: str | None
    ) -> AsyncGenerator[events.ServerEvent, None]:
        """GET server-sent events; if the stream breaks off, resume after the last event.

        Ends with the event `end`, or if the server has no more events (204). Raises ServerDown
        after MOST_EMPTY streams in a row that end at once without an event.
        """
        tries, pauses = self._retries.begun(), Pauses()
        while True:
            reader = events.EventReader()
            headers = {"Accept": events.EVENT_STREAM}
            if after is not None:
                headers["Last-Event-ID"] = after
            is_open, had_events, opened = False, False, time.monotonic()
            try:
                async with self._opened("GET", path, headers=headers) as response:
                    is_open = True
                    if response.status_code == httpx.codes.NO_CONTENT:
                        return
                    async for line in self._lines(response):
                        event = reader.read(line)
                        if event is None:
                            continue
                        after = event.event_id or after
                        tries, had_events = self._retries.begun(), True
                        yield event
                        if event.kind == "end":
                            return
            except ServerDown as error:
                if not is_open:
                    raise
                wait = tries.wait(error, repeatable=True)
            else:
                lasted = time.monotonic() - opened
                wait = pauses.after(reader.retry_seconds, had_events=had_events, lasted=lasted)
            await anyio.sleep(wait)

    async def _request_model(
        self,
        answer: type[T],
        method: str,
        path: str,
        *,
        repeatable: bool | None = None,
        **sent: Any,
    ) -> T:
        """Send a request and validate its JSON response as the model `answer`."""
        body = await self.request_json(method, path, repeatable=repeatable, **sent)
        return responses.parse_answer(answer, body, f"{method} {path}")

    async def _replied(
        self,
        method: str,
        path: str,
        *,
        repeatable: bool | None = None,
        also: tuple[int, ...] = (),
        **sent: Any,
    ) -> responses.Reply:
        """Send a request and read its whole response; retry if the response breaks off."""
        tries = self._retries.begun()
        while True:
            try:
                with responses.server_down_on_failure(self.url), self._deadline() as deadline:
                    response = await self._sent(deadline, method, path, also, **sent)
                    return responses.Reply.of(response, await self._whole(deadline, response))
            except CallslipError as error:
                wait = tries.wait(error, repeatable=requests.repeatable(method, repeatable))
            await anyio.sleep(wait)

    @asynccontextmanager
    async def _opened(
        self, method: str, path: str, *, repeatable: bool | None = None, **sent: Any
    ) -> AsyncIterator[httpx.Response]:
        """Open a response whose body the caller reads; retries happen only before the body."""
        tries = self._retries.begun()
        while True:
            try:
                with responses.server_down_on_failure(self.url), self._deadline() as deadline:
                    response = await self._sent(deadline, method, path, **sent)
                break
            except CallslipError as error:
                wait = tries.wait(error, repeatable=requests.repeatable(method, repeatable))
            await anyio.sleep(wait)
        try:
            with responses.server_down_on_failure(self.url):
                yield response
        finally:
            await response.aclose()

    def _deadline(self) -> AbstractContextManager[AsyncDeadline]:
        return AsyncDeadline.begun(self._timeout, self.url)

    async def _sent(
        self,
        deadline: AsyncDeadline,
        method: str,
        path: str,
        also: tuple[int, ...] = (),
        **sent: Any,
    ) -> httpx.Response:
        """Send the request once; raise the server's error, unless the status is in `also`."""
        request = requests.request_to(self._http, self._address, method, path, **sent)
        request.extensions = {**request.extensions, "trace": deadline.on_trace_event}
        with requests.while_open(self._http):
            response = await self._http.send(request, stream=True, auth=self._address.sign)
        if not (response.is_success or response.status_code in also):
            raise responses.error_in(
                responses.Reply.of(response, await self._whole(deadline, response))
            )
        return response

    async def _lines(
        self, response: httpx.Response, seconds: float = math.inf
    ) -> AsyncGenerator[str, None]:
        """Yield each line of a body when it arrives; ServerDown after `seconds` of waiting."""
        reader, left, began = LineReader(), seconds, time.monotonic()
        async for part in response.aiter_bytes():
            left -= time.monotonic() - began
            if left < 0:
                raise ServerDown(f"no whole answer from {self.url} in {seconds:g} s")
            for line in reader.read(part):
                yield line
            began = time.monotonic()
        for line in reader.rest():
            yield line

    async def _whole(self, deadline: AsyncDeadline, response: httpx.Response) -> bytes:
        """Read the body; raises ServerDown after the deadline, PermanentError over LARGEST_BODY."""
        parts, size = [], 0
        try:
            async for part in response.aiter_bytes():
                deadline.look()
                size = responses.checked_size(size + len(part))
                parts.append(part)
        finally:
            await response.aclose()
        return b"".join(parts)
