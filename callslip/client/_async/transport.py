"""Sending requests and reading answers: retries, timeouts, streams."""

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
from callslip.client import wire
from callslip.client.deadlines import AsyncDeadline
from callslip.client.lines import LineReader
from callslip.client.retries import Pauses, Retries
from callslip.errors import CallslipError, DeskDown

T = TypeVar("T", bound=BaseModel)


class AsyncTransport:
    """Connections to one desk, kept open.

    Every call raises the error that the desk answered, by its class of `callslip.errors`, and
    DeskDown where there is no answer. The `request_…` calls take paths and give what JSON says, for
    whatever has no method here.
    """

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
        """`key` is the desk's api.key; without `url` both are those of the environment.

        `timeout` is in seconds: for each part of a request, and for an answer as a whole from the
        end of the request on. `http` is used instead of a client of this one's own, and closed with
        it: for proxies or certificates.
        """
        self._place = wire.Place.of(url, key)
        self._timeout = timeout
        self._retries = retries or Retries()
        self._http = http or httpx.AsyncClient(
            timeout=timeout,
            trust_env=False,
            verify=self.url.startswith("https:"),  # reading certificates takes 15 ms
            limits=httpx.Limits(
                max_connections=connections,
                max_keepalive_connections=connections,
                keepalive_expiry=wire.KEEPALIVE_SECONDS,
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
        """Where the desk is."""
        return self._place.url

    def with_key(self, key: str | SecretStr | None) -> Self:
        """The same connections, with another key or none."""
        other = copy.copy(self)
        other._place = wire.Place(self.url, wire.checked_key(key))
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
        repeatable: bool | None = None,
        also: tuple[int, ...] = (),
    ) -> Any:
        """Send a request for its answer in JSON; `also` are statuses that are no errors.

        It is `repeatable` where sending it twice is harmless: left out, as its method says.
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
            headers={"Content-Type": content_type} if content_type else None,
        )
        return reply.json()

    async def request_text(self, path: str) -> str:
        """GET a text."""
        return (await self._replied("GET", path)).content.decode("utf-8", "replace")

    async def request_lines(
        self, path: str, *, params: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[str, None]:
        """GET lines of text as they come."""
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
    ) -> AsyncGenerator[wire.ServerEvent, None]:
        """Server-sent events as they come; `error` among them is raised.

        DeskDown where they are waited for longer than `timeout` seconds in all.
        """
        headers = {"Accept": wire.EVENT_STREAM}
        async with self._opened(
            method, path, repeatable=repeatable, json=json, headers=headers
        ) as response:
            reader = wire.EventReader()
            async for line in self._lines(response, math.inf if timeout is None else timeout):
                event = reader.read(line)
                if event is None:
                    continue
                if event.kind == "error":
                    raise wire.error_of_event(event)
                yield event

    async def resumed_events(
        self, path: str, after: str | None
    ) -> AsyncGenerator[wire.ServerEvent, None]:
        """GET server-sent events and go on after the last one where the stream breaks off.

        It ends with the event `end`, or where nothing is left to be told (204). DeskDown after so
        many streams that end at once and tell nothing.
        """
        tries, pauses = self._retries.begun(), Pauses()
        while True:
            reader = wire.EventReader()
            headers = {"Accept": wire.EVENT_STREAM}
            if after is not None:
                headers["Last-Event-ID"] = after
            is_open, has_told, opened = False, False, time.monotonic()
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
                        tries, has_told = self._retries.begun(), True
                        yield event
                        if event.kind == "end":
                            return
            except DeskDown as error:
                if not is_open:
                    raise
                wait = tries.wait(error, repeatable=True)
            else:
                lasted = time.monotonic() - opened
                wait = pauses.after(reader.retry_seconds, has_told=has_told, lasted=lasted)
            await anyio.sleep(wait)

    async def _asked(
        self,
        answer: type[T],
        method: str,
        path: str,
        *,
        repeatable: bool | None = None,
        **sent: Any,
    ) -> T:
        """The answer to a request, as its model."""
        told = await self.request_json(method, path, repeatable=repeatable, **sent)
        return wire.understood(answer, told, f"{method} {path}")

    async def _replied(
        self,
        method: str,
        path: str,
        *,
        repeatable: bool | None = None,
        also: tuple[int, ...] = (),
        **sent: Any,
    ) -> wire.Reply:
        """An answer, read whole; a try that breaks off in its middle is one that failed."""
        tries = self._retries.begun()
        while True:
            try:
                with wire.reaching(self.url), self._deadline() as deadline:
                    response = await self._sent(deadline, method, path, also, **sent)
                    return wire.Reply.of(response, await self._whole(deadline, response))
            except CallslipError as error:
                wait = tries.wait(error, repeatable=wire.repeatable(method, repeatable))
            await anyio.sleep(wait)

    @asynccontextmanager
    async def _opened(
        self, method: str, path: str, *, repeatable: bool | None = None, **sent: Any
    ) -> AsyncIterator[httpx.Response]:
        """An answer whose body is the caller's to read; it is not asked for again in its middle."""
        tries = self._retries.begun()
        while True:
            try:
                with wire.reaching(self.url), self._deadline() as deadline:
                    response = await self._sent(deadline, method, path, **sent)
                break
            except CallslipError as error:
                wait = tries.wait(error, repeatable=wire.repeatable(method, repeatable))
            await anyio.sleep(wait)
        try:
            with wire.reaching(self.url):
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
        """Send it once; raises what the desk answers, unless it is a success or one of `also`."""
        request = wire.request_to(self._http, self._place, method, path, **sent)
        request.extensions = {**request.extensions, "trace": deadline.told}
        with wire.while_open(self._http):
            response = await self._http.send(request, stream=True, auth=self._place.sign)
        if not (response.is_success or response.status_code in also):
            raise wire.error_in(wire.Reply.of(response, await self._whole(deadline, response)))
        return response

    async def _lines(
        self, response: httpx.Response, seconds: float = math.inf
    ) -> AsyncGenerator[str, None]:
        """The lines of a body as they come; DeskDown after so many `seconds` of waiting for it."""
        reader, left, began = LineReader(), seconds, time.monotonic()
        async for part in response.aiter_bytes():
            left -= time.monotonic() - began
            if left < 0:
                raise DeskDown(f"no whole answer from {self.url} in {seconds:g} s")
            for line in reader.read(part):
                yield line
            began = time.monotonic()
        for line in reader.rest():
            yield line

    async def _whole(self, deadline: AsyncDeadline, response: httpx.Response) -> bytes:
        """The body, within the time that there is for it, and the size."""
        parts, size = [], 0
        try:
            async for part in response.aiter_bytes():
                deadline.look()
                size = wire.checked_size(size + len(part))
                parts.append(part)
        finally:
            await response.aclose()
        return b"".join(parts)
