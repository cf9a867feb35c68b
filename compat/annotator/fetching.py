"""An HTTP client for links: a time limit for all requests, bounded responses, checked redirects."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from callslip.config.settings import MEGABYTE
from callslip.errors import CallslipError, FileTooLarge, SourceDown, SourceError
from callslip.http.addresses import CheckedTransport, Network
from callslip.http.transport import BoundedTransport, TooLarge

MOST_REDIRECTS = 5


class TimeLimit:
    """The seconds that all requests of a job may take together.

    The time between requests, in which a page is parsed for example, does not count.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._left = seconds

    @contextmanager
    def request(self) -> Iterator[float]:
        """Count the time of the block; yield the seconds that are left for it.

        Raises SourceDown if none are left.
        """
        if self._left <= 0:
            raise self.exceeded()
        start = time.monotonic()
        try:
            yield self._left
        finally:
            self._left -= time.monotonic() - start

    def exceeded(self) -> SourceDown:
        """Return the error for requests that took longer."""
        return SourceDown(f"the links did not answer within {self.seconds:g} s")


@dataclass(frozen=True)
class Answer:
    """The response to a request for a link, with its headers and the address after redirects."""

    content: bytes
    headers: Mapping[str, str]
    url: str

    @property
    def is_html(self) -> bool:
        """Whether the response's content type is HTML or XHTML."""
        media = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return media in ("text/html", "application/xhtml+xml")


class Http:
    """Sends requests; threads may share an instance, processes may not."""

    def __init__(self, most_mb: int, public: Sequence[Network] | None = None) -> None:
        """With `public`, connect only to public addresses and to addresses in these networks.

        `most_mb` is the largest response in MB.
        """
        make: Callable[[], httpx.BaseTransport] | None = None
        if public is not None:
            make = lambda: CheckedTransport(public)  # noqa: E731
        self._most_mb = most_mb
        self._http = httpx.Client(
            transport=BoundedTransport(most_mb * MEGABYTE, make),
            trust_env=False,
            headers={"User-Agent": "callslip"},
        )

    def get(self, url: str, limit: TimeLimit, *, redirects: bool) -> Answer:
        """Return a response with a status from 200 to 299; follow redirects if `redirects` is set.

        Raises SourceError, SourceDown, FileTooLarge or AddressNotAllowed for any other outcome.
        """
        for _ in range(MOST_REDIRECTS + 1):
            response = self._send("GET", url, limit)
            if not (redirects and response.is_redirect):
                break
            try:
                url = str(httpx.URL(url).join(response.headers["location"]))
            except (KeyError, ValueError, httpx.InvalidURL):
                raise SourceError("a link redirects to what is no web address") from None
        else:
            raise SourceError(f"a link redirects more than {MOST_REDIRECTS} times")
        _check(response)
        return Answer(response.content, response.headers, url)

    def post_file(self, url: str, name: str, content: bytes, limit: TimeLimit) -> httpx.Response:
        """Send a file as the part `file` of a form; errors as for `get`."""
        response = self._send("POST", url, limit, files={"file": (name, content)})
        _check(response)
        return response

    def _send(self, method: str, url: str, limit: TimeLimit, **what: Any) -> httpx.Response:
        try:
            with limit.request() as seconds:
                return self._http.request(method, url, timeout=seconds, **what)
        except TooLarge:
            raise FileTooLarge(f"a link answers with more than {self._most_mb} MB") from None
        except (httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeError):
            raise SourceError("a link is no web address") from None
        except httpx.ReadTimeout:
            raise limit.exceeded() from None
        except CallslipError:
            raise
        except (httpx.HTTPError, OSError) as error:
            raise SourceDown(f"a link does not answer: {type(error).__name__}") from None


def _check(response: httpx.Response) -> None:
    status = response.status_code
    if status in (408, 425, 429) or status >= 500:
        raise SourceDown(f"a link answered {status}")
    if not 200 <= status < 300:
        raise SourceError(f"a link answered {status}")
