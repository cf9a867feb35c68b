"""A URL as a source: fetched when it changed, and never from inside the network."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path

import pytest
from source_parts import Library, make_library

from callslip.config.settings import SourcesSettings
from callslip.errors import (
    AddressNotAllowed,
    CallslipError,
    FileTooLarge,
    InvalidRequest,
    SourceDown,
    SourceError,
)
from callslip.http.addresses import is_allowed, network_of
from callslip.ingestion.sources import source_url, web
from callslip.ingestion.sources.web import WebPage
from callslip.stores.ledger import Edit

LOOPBACK = (ip_network("127.0.0.0/8"),)

Answer = Callable[[BaseHTTPRequestHandler], None]


class Site(ThreadingHTTPServer):
    """A web server of this test's own that remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages: dict[str, Answer] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        """Of a page."""
        return f"http://{host}:{self.server_port}{path}"


class _Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((self.path, headers))
        self.server.pages[self.path](self)

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


def page(content: bytes, status: int = 200, **headers: str) -> Answer:
    """Answers with this, or with 304 where the request knows its ETag."""
    output = {name.replace("_", "-"): value for name, value in headers.items()}

    def answer(handler: BaseHTTPRequestHandler) -> None:
        etag = output.get("ETag")
        if etag and handler.headers.get("If-None-Match") == etag:
            handler.send_response(304)
            handler.end_headers()
            return
        handler.send_response(status)
        for name, value in output.items():
            handler.send_header(name, value)
        if "Content-Length" not in output:
            handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


@pytest.fixture
def site() -> Iterator[Site]:
    """A running server."""
    server = Site()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    """An empty library."""
    made = make_library(tmp_path)
    with closing(made.ledger):
        yield made


def opened(url: str, **more: object) -> WebPage:
    """The page, with loopback allowed."""
    given: dict[str, object] = {"most_mb": 1, "timeout_seconds": 5.0, "networks": LOOPBACK}
    return WebPage(url, **(given | more))  # type: ignore[arg-type]


def read(scope: WebPage) -> bytes:
    """What the page has."""
    with closing(scope):
        (item,) = scope.items()
        blocks = scope.fetch(item, None, lambda: None).blocks
        assert blocks is not None
        return b"".join(blocks)


def test_a_page_is_fetched_again_only_when_it_changed(site: Site, library: Library) -> None:
    site.pages["/guide.html"] = page(b"<p>one</p>", ETag='"1"')
    url = site.url("/guide.html")
    source = library.add(url, "guide")
    with closing(opened(url)) as scope:
        assert library.look(source, scope).counts == {"new": 1}
        assert library.look(source, scope).counts == {"unchanged": 1}
        assert site.requests[1][1]["if-none-match"] == '"1"'
        site.pages["/guide.html"] = page(b"<p>two</p>", ETag='"2"')
        assert library.look(source, scope).counts == {"changed": 1}
    found = library.document("guide/guide.html")
    assert (found.newest.version, found.newest.properties["source"]) == (2, url)
    assert found.newest.filename == "guide.html"
    assert found.newest.url == url


def test_what_an_edit_set_stays_when_the_page_changes(site: Site, library: Library) -> None:
    site.pages["/guide.html"] = page(b"<p>one</p>", ETag='"1"')
    url = site.url("/guide.html")
    source = library.add(url, "guide")
    with closing(opened(url)) as scope:
        library.look(source, scope)
        edit = Edit(title="By hand", properties={"topic": "travel"})
        document_id = library.document("guide/guide.html").document_id
        library.ledger.edits.make(document_id, edit, if_match=None)
        site.pages["/guide.html"] = page(b"<p>two</p>", ETag='"2"')
        assert library.look(source, scope).counts == {"changed": 1}
    newest = library.document("guide/guide.html").newest
    assert (newest.title, newest.url, newest.version) == ("By hand", url, 3)
    assert newest.properties == {"topic": "travel", "source": url}


def test_without_an_etag_the_time_is_sent_and_the_content_compared(
    site: Site, library: Library
) -> None:
    when = "Tue, 04 Nov 2025 10:00:00 GMT"
    site.pages["/"] = page(b"<p>one</p>", Last_Modified=when)
    source = library.add(site.url("/"), "home")
    with closing(opened(site.url("/"))) as scope:
        library.look(source, scope)
        assert library.look(source, scope).counts == {"unchanged": 1}
    assert site.requests[1][1]["if-modified-since"] == when
    assert len(library.sent) == 1


def test_a_page_that_is_gone_is_deleted_only_when_forced(site: Site, library: Library) -> None:
    site.pages["/a"] = page(b"text")
    source = library.add(site.url("/a"), "a", delete_missing=True)
    with closing(opened(site.url("/a"))) as scope:
        library.look(source, scope)
        site.pages["/a"] = page(b"not here", status=404)
        found = library.look(source, scope)
        assert found.failure is not None
        assert found.failure.type == "nothing-listed"
        assert library.names() == {"a/a"}
        assert library.look(source, scope, force=True).counts == {"deleted": 1}


def test_a_page_that_never_was_is_a_failure_with_the_answer(site: Site, library: Library) -> None:
    site.pages["/a"] = page(b"not here", status=404)
    source = library.add(site.url("/a"), "a")
    with closing(opened(site.url("/a"))) as scope:
        assert library.look(source, scope).counts == {"failed": 1}
    (failure,) = library.ledger.sources.failures(source.source_id).values()
    assert "answered 404" in failure.detail


def test_a_page_may_not_be_inside_the_network_unless_that_is_allowed(site: Site) -> None:
    site.pages["/"] = page(b"secret")
    with pytest.raises(AddressNotAllowed, match=r"127\.0\.0\.1, which is not public"):
        read(opened(site.url("/"), networks=()))
    with pytest.raises(AddressNotAllowed):
        read(opened(site.url("/", host="localhost"), networks=(ip_network("10.0.0.0/8"),)))
    assert site.requests == []
    assert read(opened(site.url("/"))) == b"secret"


def test_a_name_is_resolved_once_and_every_address_of_it_is_checked(site: Site) -> None:
    site.pages["/"] = page(b"here")
    requests: list[str] = []

    def rebinding(host: str, _: int) -> list[str]:
        requests.append(host)
        return ["127.0.0.1"] if len(requests) == 1 else ["10.0.0.1"]

    url = site.url("/", host="library.example")
    assert read(opened(url, resolver=rebinding)) == b"here"
    assert requests == ["library.example"]
    assert site.requests[0][1]["host"] == f"library.example:{site.server_port}"

    with pytest.raises(AddressNotAllowed, match=r"10\.0\.0\.1"):
        read(opened(url, resolver=lambda *_: ["127.0.0.1", "10.0.0.1"]))


def test_a_redirect_is_checked_like_the_first_address(site: Site) -> None:
    site.pages["/"] = page(b"", status=302, Location="http://169.254.169.254/latest/meta-data")
    with pytest.raises(AddressNotAllowed, match=r"169\.254\.169\.254"):
        read(opened(site.url("/")))
    site.pages["/"] = page(b"", status=302, Location="/next")
    site.pages["/next"] = page(b"followed")
    assert read(opened(site.url("/"))) == b"followed"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (page(b"x" * 1_000_001), FileTooLarge),
        (page(b"x" * 10, Content_Length="99999999"), FileTooLarge),
        (page(b"x", status=403), SourceError),
        (page(b"x", status=503), SourceDown),
        (page(b"x", status=429), SourceDown),
        (page(b"packed", Content_Encoding="gzip"), SourceError),
        (page(b"", status=302, Location="/"), SourceError),
        (page(b"", status=302, Location="file:///etc/passwd"), SourceError),
        (page(b"", status=302, Location="http://xn--/"), SourceError),
        (page(b"short", Content_Length="100"), SourceDown),
    ],
)
def test_what_is_wrong_with_an_answer_is_named(
    site: Site, answer: Answer, error: type[CallslipError]
) -> None:
    site.pages["/"] = answer
    with pytest.raises(error):
        read(opened(site.url("/")))


def test_a_stream_without_end_is_cut_at_the_limit(site: Site, library: Library) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"x" * 65536)
        except OSError:
            pass

    site.pages["/"] = endless
    source = library.add(site.url("/"), "endless")
    with closing(opened(site.url("/"))) as scope:
        assert library.look(source, scope).counts == {"failed": 1}
    (failure,) = library.ledger.sources.failures(source.source_id).values()
    assert failure.type == "file-too-large"


def test_a_server_that_drips_is_left_after_the_time_limit(site: Site) -> None:
    stop = threading.Event()

    def drips(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while not stop.wait(0.02):
                handler.wfile.write(b"x" * 70_000)
        except OSError:
            pass

    site.pages["/"] = drips
    try:
        with pytest.raises(SourceDown, match="more than"):
            read(opened(site.url("/"), timeout_seconds=0.2))
    finally:
        stop.set()


@pytest.mark.parametrize(
    "line", [b"HTTP/1.1 100 Continue\r\n\r\n", b"X-Filler: " + b"x" * 80 + b"\r\n", b"x" * 80]
)
def test_headers_without_an_end_are_left_at_a_size_or_a_time(
    monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    monkeypatch.setattr(web, "HEADERS_SECONDS", 1.0)
    sent = 0

    def send(listener: socket.socket) -> None:
        nonlocal sent
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            if not line.startswith(b"HTTP"):
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while True:
                connection.sendall(line * 20)
                sent += len(line) * 20
                time.sleep(0.002)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=send, args=(listener,))
        thread.start()
        before = time.monotonic()
        with pytest.raises(SourceDown):
            read(opened(f"http://127.0.0.1:{listener.getsockname()[1]}/", timeout_seconds=60.0))
        assert time.monotonic() - before < 4
        thread.join()
    if not line.startswith(b"HTTP"):
        assert sent < 1_000_000


def test_a_server_that_does_not_answer_is_down() -> None:
    with pytest.raises(SourceDown, match="does not answer"):
        read(opened("http://127.0.0.1:9/"))


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),  # noqa: S104
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "198.18.0.1"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1"),
        *("fec0::1", "feff::1", "192.0.0.9", "192.0.0.10", "192.88.99.1", "::ffff:192.88.99.1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1"),
    ],
)
def test_addresses_inside_a_network_are_not_public(address: str) -> None:
    assert not is_allowed(address, ())


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700:4700::1111", "64:ff9b::101:101"])
def test_public_addresses_are_allowed(address: str) -> None:
    assert is_allowed(address, ())


def test_networks_are_allowed_by_a_setting() -> None:
    networks = SourcesSettings(allow_networks="10.0.0.0/8, 192.168.1.7").networks
    assert is_allowed("10.1.2.3", networks)
    assert is_allowed("192.168.1.7", networks)
    assert is_allowed("::ffff:10.1.2.3", networks)
    assert not is_allowed("192.168.1.8", networks)
    with pytest.raises(ValueError, match="allow_networks"):
        SourcesSettings(allow_networks="10.0.0.1/8")


def test_an_address_is_checked_when_it_is_added(tmp_path: Path) -> None:
    assert source_url(str(tmp_path)) == f"file://{tmp_path.resolve()}"
    assert source_url(f"file://{tmp_path}") == f"file://{tmp_path.resolve()}"
    assert source_url("https://example.org/a#part") == "https://example.org/a"
    assert source_url("s3://bucket/papers/") == "s3://bucket/papers"


@pytest.mark.parametrize(
    "given",
    [
        *("https://user:secret@example.org/", "ftp://example.org/", "http:///x", "s3://k:s@b/p"),
        *("memory://a::s3://b", "/no/such/folder", "https://example.org/\nHost: x", "github://a/b"),
        "https://xn--/",
    ],
)
def test_an_address_that_cannot_be_a_source_is_refused(given: str) -> None:
    with pytest.raises(InvalidRequest):
        source_url(given)


def test_a_client_is_known_by_the_network_that_one_machine_has() -> None:
    assert network_of("::ffff:192.0.2.1") == network_of("192.0.2.1") == "192.0.2.1"
    assert network_of("2001:db8::1") == network_of("2001:db8::2") != network_of("2001:db8:0:1::1")
