"""The client of a layout server: docling-serve, which reads PDFs and images with models.

A file leaves the machine only if `layout.base_url` is set. The call is made by the worker, because
the child process that reads files gets neither addresses nor keys; the child reads the response.
"""

import json
import re
import time
from typing import Any

import httpx

from callslip.config.settings import MEGABYTE, LayoutSettings
from callslip.errors import LayoutServerDown, SettingsError
from callslip.http.transport import UNTIL, BoundedTransport, TooLarge, direct
from callslip.http.urls import parse_url
from callslip.per_process import PerProcess

POLL_SECONDS = 5
"""How long the server may hold a request for the state of a task."""

STATE_SECONDS = 30.0
"""The longest time of such a request."""

PAUSE_SECONDS = 0.2
"""The least time between two such requests."""

_RUNNING = ("pending", "started")
_READ = ("success", "partial_success")
_BUSY = (408, 409, 425, 429)
_MISCONFIGURED = (401, 403, 404, 405)
_TASK = re.compile(r"[\w-]{1,100}")
_WORD = re.compile(r"[a-z_]{1,30}")
_OPTIONS = {"to_formats": "json", "image_export_mode": "placeholder"}


class NotConverted(Exception):
    """The server answers, but cannot read this file; the message says why, without its text."""


class ServerFault(LayoutServerDown):
    """The server answered with the status `answered`, 500 or above; the file may be the cause."""

    def __init__(self, detail: str, answered: int) -> None:
        super().__init__(detail)
        self.answered = answered


class LayoutServer:
    """Sends files to the server at `layout.base_url`, past any proxy. Threads may share it.

    The protocol is that of docling-serve 1: a file is submitted as a task, the task's state is
    requested until it ends, then its result. A request that takes the whole time
    (`/v1/convert/file`) would end at a limit of the server, which is 2 minutes by default.
    """

    def __init__(self, settings: LayoutSettings) -> None:
        """Raises SettingsError for an invalid URL."""
        try:
            url = parse_url(settings.base_url or "")
        except httpx.InvalidURL:
            url = httpx.URL("")
        if url.scheme not in ("http", "https") or not url.host:
            raise SettingsError("layout.base_url is no http or https address")
        self._settings = settings
        self._base = str(url).rstrip("/")
        self._at = str(url.copy_with(userinfo=b"", query=None))
        self._http = PerProcess(lambda: _client(settings))

    def reads(self, media_type: str) -> bool:
        """Whether files of this media type, that of a PDF or an image, are sent."""
        family = "image" if media_type.startswith("image/") else "pdf"
        return family in self._settings.formats.split(",")

    def ping(self) -> str:
        """Return the server's address, if it answers; raises the errors of `convert`."""
        self._request("GET", "/health", time.monotonic() + STATE_SECONDS)
        return self._at

    def convert(self, data: bytes, media_type: str) -> bytes:
        """Return the server's document as JSON, the whole within `layout.timeout_seconds`.

        The file's own name is not sent. Raises NotConverted if this file cannot be read,
        LayoutServerDown if the server cannot be reached or does not speak the protocol, ServerFault
        if it fails, and SettingsError if it refuses the key or has no such address.
        """
        until = time.monotonic() + self._settings.timeout_seconds
        name = f"document.{media_type.rpartition('/')[2]}"
        task = self._request(
            "POST",
            "/v1/convert/file/async",
            until,
            data=_OPTIONS,
            files={"files": (name, data, media_type)},
        )
        key = task.get("task_id")
        if not isinstance(key, str) or not _TASK.fullmatch(key):
            raise self._down("answered without a task")
        state = task.get("task_status")
        while state in _RUNNING:
            time.sleep(PAUSE_SECONDS)
            state = self._state(key, until)
        if state not in _READ:
            raise NotConverted(f"its task ended with {_named(state)}")
        result = self._request("GET", f"/v1/result/{key}", until, lost_is_down=True)
        if result.get("status") not in _READ:
            raise NotConverted(f"its state is {_named(result.get('status'))}")
        document = result.get("document")
        content = document.get("json_content") if isinstance(document, dict) else None
        if not isinstance(content, dict):
            raise self._down("answered without a document")
        return json.dumps({"partial": result["status"] != "success", **content}).encode()

    def close(self) -> None:
        """Close the connections of this process; the next file opens others."""
        http = self._http.built()
        if http is not None:
            http.close()
            self._http = PerProcess(lambda: _client(self._settings))

    def _state(self, key: str, until: float) -> object:
        self._check_time(until)
        path = f"/v1/status/poll/{key}?wait={POLL_SECONDS}"
        soon = min(until, time.monotonic() + STATE_SECONDS)
        return self._request("GET", path, soon, lost_is_down=True).get("task_status")

    def _check_time(self, until: float) -> None:
        if time.monotonic() >= until:
            raise NotConverted(f"it took longer than {self._settings.timeout_seconds:g} s")

    def _request(
        self, method: str, path: str, until: float, *, lost_is_down: bool = False, **parts: Any
    ) -> dict[str, Any]:
        self._check_time(until)
        left = until - time.monotonic()
        try:
            response = self._http.get().request(
                method, self._base + path, extensions={UNTIL: until}, timeout=left, **parts
            )
        except TooLarge:
            raise NotConverted(f"its text has more than {self._settings.max_mb:,} MB") from None
        except httpx.TimeoutException:
            raise self._down(f"did not answer in {left:.0f} s") from None
        except (httpx.HTTPError, OSError) as error:
            raise self._down(f"does not answer: {type(error).__name__}") from None
        self._check(response.status_code, lost_is_down)
        try:
            answer = response.json()
        except ValueError:
            raise self._down("answered no JSON") from None
        if not isinstance(answer, dict):
            raise self._down("answered no object")
        return answer

    def _check(self, status: int, lost_is_down: bool) -> None:
        if 200 <= status < 300:
            return
        if status >= 500:
            down = self._down(f"answered status {status}")
            raise ServerFault(down.detail, status)
        if status in _BUSY or (status == 404 and lost_is_down):
            raise self._down(f"answered status {status}")
        if status in _MISCONFIGURED or status < 400:
            raise SettingsError(
                f"the layout server at {self._at} answered status {status}",
                hint="Check layout.base_url and layout.api_key.",
            )
        raise NotConverted(f"it answered status {status}")

    def _down(self, what: str) -> LayoutServerDown:
        return LayoutServerDown(f"the layout server at {self._at} {what}")


def _client(settings: LayoutSettings) -> httpx.Client:
    key = settings.api_key.get_secret_value() if settings.api_key else None
    return httpx.Client(
        transport=BoundedTransport(settings.max_mb * MEGABYTE, direct),
        headers={"X-Api-Key": key} if key else {},
        trust_env=False,
    )


def _named(state: object) -> str:
    """Return a state of the server; another text of the server is not repeated."""
    return state if isinstance(state, str) and _WORD.fullmatch(state) else "an unknown state"
