"""Checks the headers of a request for what gunicorn lets pass."""

import re

from gunicorn.http.message import Request

_HOST = re.compile(r"[A-Za-z0-9._~%!$&'()*+,;=-]*(?::\d*)?|\[[0-9A-Fa-f:.]+\](?::\d*)?")


def fault_of(request: Request) -> str:
    """Return what is wrong with the headers of a request, and "" if nothing is.

    A request has one valid Host, which HTTP/1.0 may lack (RFC 9112, section 3.2). Its body may have
    no other coding than chunks (section 6.1), such as gzip.
    """
    hosts = _values(request, "HOST")
    is_lacking = not hosts and request.version >= (1, 1)
    if is_lacking or len(hosts) > 1 or not all(map(_HOST.fullmatch, hosts)):
        return "has not one sound Host header"
    if ",".join(_values(request, "TRANSFER-ENCODING")).strip().lower() not in ("", "chunked"):
        return "has a Transfer-Encoding that is not chunked alone"
    return ""


def _values(request: Request, name: str) -> list[str]:
    return [value for header, value in request.headers if header == name]
