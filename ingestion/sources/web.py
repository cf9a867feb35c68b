"""One document at a URL, by conditional requests (`If-None-Match`, `If-Modified-Since`)."""

import time
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

import httpx

from callslip.config.settings import MEGABYTE
from callslip.errors import SourceDown, SourceError
from callslip.http.addresses import CheckedTransport, Network, Resolve, resolve
from callslip.http.transport import UNTIL, BoundedTransport, DeadlinePassed
from callslip.ingestion.sources.items import BLOCK_BYTES, Fetching, Item, Tick, too_large

MOST_REDIRECTS = 5
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 30.0
"""The maximum time without a received byte."""

HEADERS_SECONDS = 30.0
"""The time for the headers of a response; httpcore reads 100 KB of them at most."""

GONE = (404, 410)
PASSING = (408, 425, 429)
"""Status codes below 500 after which another attempt may succeed."""


class WebPage:
    """A URL as a source with one file."""

    def __init__(
        self,
        url: str,
        *,
        most_mb: int,
        timeout_seconds: float,
        networks: Sequence[Network] = (),
        resolver: Resolve = resolve,
    ) -> None:
        self._url, self._most_mb, self._timeout = url, most_mb, timeout_seconds
        self.complete = True
        self._http = httpx.Client(
            transport=BoundedTransport(
                None,
                lambda: CheckedTransport(networks, resolver),
                whole=False,
                headers_seconds=HEADERS_SECONDS,
            ),
            timeout=httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
            follow_redirects=True,
            max_redirects=MOST_REDIRECTS,
            trust_env=False,
            headers={"User-Agent": "callslip"},
        )

    def items(self) -> Iterator[Item]:
        """Yield the one file; only `fetch` shows whether it exists."""
        last = httpx.URL(self._url).path.rstrip("/").rpartition("/")[2]
        yield Item(unquote(last) or "index.html")

    def address(self, _: Item) -> str:
        """Return the URL."""
        return self._url

    def close(self) -> None:
        """Close every connection."""
        self._http.close()

    def fetch(self, item: Item, known: Item | None, tick: Tick) -> Fetching:
        """Request the page with the validators of the `known` item."""
        conditions = {}
        if known is not None and known.etag:
            conditions["If-None-Match"] = known.etag
        if known is not None and known.modified:
            conditions["If-Modified-Since"] = known.modified
        tick()
        until = time.monotonic() + self._timeout
        try:
            request = self._http.build_request(
                "GET", self._url, headers=conditions, extensions={UNTIL: until}
            )
            response = self._http.send(request, stream=True)
        except httpx.TooManyRedirects:
            raise SourceError(f"{self._url} redirects more than {MOST_REDIRECTS} times") from None
        except (httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeError, KeyError):
            raise SourceError(f"{self._url} redirects to what is no web address") from None
        except DeadlinePassed:
            seconds = min(HEADERS_SECONDS, self._timeout)
            raise SourceDown(f"{self._url} took more than {seconds:g} s") from None
        except httpx.HTTPError as error:
            raise self._silent(error) from None
        if response.status_code == 304 and known is not None:
            response.close()
            return Fetching(None, lambda: known)
        try:
            self._check(response)
        except BaseException:
            response.close()
            raise
        seen = Item(
            item.path,
            response.headers.get("etag", "")[:512],
            response.headers.get("last-modified", "")[:64],
        )
        return Fetching(self._blocks(response), lambda: seen)

    def _check(self, response: httpx.Response) -> None:
        """Raise unless the response is a complete, uncompressed file within the size limit."""
        status = response.status_code
        if status in GONE:
            raise Gone(f"{self._url} answered {status}: there is nothing any more")
        if status in PASSING or status >= 500:
            raise SourceDown(f"{self._url} answered {status}")
        if status != 200:
            raise SourceError(f"{self._url} answered {status}")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            # decompressed, one block could be a thousand times as large
            raise SourceError(f"{self._url} answers compressed although the request refused that")
        length = response.headers.get("content-length", "")
        if length.isdigit() and int(length) > self._most_mb * MEGABYTE:
            raise too_large(self._url, self._most_mb)

    def _blocks(self, response: httpx.Response) -> Iterator[bytes]:
        try:
            yield from response.iter_raw(BLOCK_BYTES)
        except httpx.HTTPError as error:
            raise self._silent(error) from None
        finally:
            response.close()

    def _silent(self, error: httpx.HTTPError) -> SourceDown:
        if isinstance(error, DeadlinePassed):
            return SourceDown(f"{self._url} took more than {self._timeout:g} s")
        return SourceDown(f"{self._url} does not answer: {type(error).__name__}")


class Gone(SourceError):
    """The server says that the page no longer exists."""
