"""A JSON client of the standard library, so that the client takes little of both cores."""

import http.client
import json
import threading
from typing import Any
from urllib.parse import urlsplit

SECONDS = 600.0
"""The longest time without a response."""


class JsonHttp:
    """Posts JSON on one lasting connection for each thread."""

    def __init__(self, url: str) -> None:
        """`url` is that of the server."""
        self._host = urlsplit(url).netloc
        self._threads = threading.local()

    def post(self, path: str, body: Any) -> Any:
        """Return the response. Raises OSError if its status is not 200."""
        content = json.dumps(body).encode()
        known = hasattr(self._threads, "connection")
        if not known:
            self._threads.connection = http.client.HTTPConnection(self._host, timeout=SECONDS)
        try:
            status, text = self._sent(path, content)
        except ConnectionError:
            if not known:
                raise
            status, text = self._sent(path, content)  # the server had closed it, as it was idle
        if status != http.client.OK:
            raise OSError(f"{path}: status {status}")
        return json.loads(text)

    def _sent(self, path: str, content: bytes) -> tuple[int, bytes]:
        connection: http.client.HTTPConnection = self._threads.connection
        try:
            connection.request("POST", path, content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        except OSError:
            connection.close()
            raise
