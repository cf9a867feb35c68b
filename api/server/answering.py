"""What a worker does in its threads: it checks headers and answers requests."""

import io
from contextlib import suppress
from traceback import format_tb

from flask import Response as FlaskResponse
from gunicorn.http import wsgi
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException
from gunicorn.http.message import Request
from gunicorn.workers.gthread import ThreadWorker

from callslip.api.http.admission import checked, refusal
from callslip.api.http.problems import problem
from callslip.api.server.connection import Connection
from callslip.api.server.outgoing import Outgoing
from callslip.errors import CallslipError, InternalError, InvalidRequest


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
        """Answer a request that is none, and log the kind of its fault alone.

        The text of the exception has the line, which may have a question or a key.
        """
        kind = type(exc).__name__
        fault: CallslipError = InvalidRequest(f"the request is not sound HTTP ({kind})")
        if not isinstance(exc, ParseException | LimitRequestLine | LimitRequestHeaders):
            lines = "".join(format_tb(exc.__traceback__))
            self.log.error("the request failed: %s\n%s", kind, lines)
            fault = InternalError(f"{kind} in the server")
        client.sendall(self.raw(problem(fault)))

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
