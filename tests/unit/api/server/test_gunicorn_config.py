"""How long the first line of a request may be."""

from urllib.parse import quote

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import LimitRequestLine
from gunicorn.http.parser import RequestParser

from callslip.api import gunicorn_config
from callslip.config import get_settings
from callslip.workers.commands import LONGEST_REQUEST_LINE, argv


def parsed(path: str) -> str:
    """The address as gunicorn reads it with the arguments of the server."""
    assert gunicorn_config.message.MAX_REQUEST_LINE == LONGEST_REQUEST_LINE
    config = Config()
    config.set("limit_request_line", LONGEST_REQUEST_LINE)
    line = f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    uri: str = next(RequestParser(config, iter([line]), ("127.0.0.1", 1))).uri
    return uri


def test_the_server_is_started_with_a_longer_line_that_has_an_end() -> None:
    arguments = argv("api", get_settings())
    at = arguments.index("--limit-request-line")
    assert arguments[at + 1] == str(LONGEST_REQUEST_LINE)
    assert arguments[arguments.index("--config") + 1] == f"python:{gunicorn_config.__name__}"


def test_an_address_holds_a_long_korean_question() -> None:
    path = f"/?q={quote('가' * 4000)}"
    assert parsed(path) == path
    with pytest.raises(LimitRequestLine):
        parsed("/?q=" + "a" * 70_000)
