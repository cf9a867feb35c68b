"""What a worker does in its threads: it checks headers and answers requests."""

import io
from contextlib import suppress
from traceback import format_tb

from flask import Response as FlaskResponse
from gunicorn.http import wsgi
from gunicorn.http.errors import (
    ExpectationFailed,
    InvalidHeader,
    InvalidHeaderName,
    InvalidSchemeHeaders,
    LimitRequestHeaders,
    LimitRequestLine,
    ObsoleteFolding,
    ParseException,
    UnsupportedTransferCoding,
)
from gunicorn.http.message import Request
from gunicorn.workers.gthread import ThreadWorker

from callslip.api.http.admission import checked, refusal
from callslip.api.http.problems import problem
from callslip.api.server.connection import LONGEST_HEADERS, Connection, HeadersTooLong
from callslip.api.server.outgoing import Outgoing
from callslip.errors import CallslipError, InternalError, InvalidRequest

_FRAMING = frozenset({"HOST", "CONTENT-LENGTH", "TRANSFER-ENCODING", "EXPECT", "CONNECTION"})
"""Headers that the response may name; another text may be a whole line, which is not repeated."""


class Response(wsgi.Response):
    """Gunicorn's response without its name."""

    def default_headers(self) -> list[str]:
        """The headers that the server adds."""
        headers: list[str] = super().default_headers()
        return [header for header in headers if not header.startswith("Server:")]


class AnsweringWorker(ThreadWorker):
    """Answers the request of a connection, or a fault of it."""

    def handle(self, connection: Connection) -> bool:
        """Answer a request, in a thread; return whether the connection can have another one."""
        try:
            with checked(connection.is_checked):
                return bool(self.handle_request(connection.request, connection))
        except (StopIteration, BrokenPipeError, ConnectionError):
            return False  # the response broke off
        except Exception as error:
            with suppress(OSError):
                self.handle_error(connection.request, connection.sock, connection.client, error)
            return False

    def handle_error(
        self, req: Request | None, client: Outgoing, addr: object, exc: BaseException
    ) -> None:
        """Answer data that is not a request, or a request whose work failed."""
        error, status = self.fault(exc)
        client.sendall(self.raw(problem(error, status=status)))

    def fault(self, exc: BaseException) -> tuple[CallslipError, int | None]:
        """The error for an exception, and its status; log the kind of an unknown one alone.

        The text of the exception has the line, which may have a question or a key.
        """
        if isinstance(exc, ParseException):
            what, status = self._unsound(exc)
            kind = "not sound HTTP" if status == 400 else "too long"
            return InvalidRequest(f"the request is {kind}: {what}"), status
        kind = type(exc).__name__
        lines = "".join(format_tb(exc.__traceback__))
        self.log.error("the request failed: %s\n%s", kind, lines)
        return InternalError(f"{kind} in the server"), None

    def _unsound(self, exc: ParseException) -> tuple[str, int]:
        match exc:
            case HeadersTooLong():
                return f"its first line and headers have over {LONGEST_HEADERS:,} bytes", 431
            case LimitRequestLine():
                return f"its first line has over {self.cfg.limit_request_line:,} bytes", 414
            case LimitRequestHeaders() if "size" in str(exc):
                return f"a header has over {self.cfg.limit_request_field_size:,} bytes", 431
            case LimitRequestHeaders():
                return f"it has over {self.cfg.limit_request_fields} headers", 431
            case InvalidHeader(hdr=str(name)) if name in _FRAMING:
                wrong = "is there twice, wrong, or beside one that excludes it"
                return f"its header {name.title()} {wrong}", 400
            case InvalidSchemeHeaders():
                return "its headers of a proxy contradict each other about https", 400
            case InvalidHeader() | InvalidHeaderName() | ObsoleteFolding():
                return "a header is no NAME: VALUE", 400
            case UnsupportedTransferCoding():
                return "its Transfer-Encoding is not chunked", 400
            case ExpectationFailed():
                return "its Expect is not 100-continue", 400
            case _:
                return "its first line is no METHOD PATH HTTP/1.1", 400

    def check(self, connection: Connection) -> bool:
        """Check the headers of a request, in a thread; answer it and return False if refused."""
        request = connection.request
        response, environ = wsgi.create(
            request, connection.sock, connection.client, connection.server, self.cfg
        )
        environ["wsgi.input"] = io.BytesIO()
        refused = refusal(self.wsgi, environ)
        if refused is None:
            return True
        response.force_close()
        blocks = refused(environ, response.start_response)
        try:
            for block in blocks:
                response.write(block)
            response.close()
        finally:
            blocks.close()  # type: ignore[attr-defined]  # werkzeug's; the request is recorded
        return False

    @staticmethod
    def raw(response: FlaskResponse) -> bytes:
        """The bytes of a response that ends its connection."""
        lines = f"HTTP/1.1 {response.status}\r\nConnection: close\r\n{response.headers}"
        return lines.encode("latin-1") + response.get_data()
