"""Reads the API key from request headers, and compares it in constant time."""

import binascii
import hmac
from base64 import b64decode

WRONG_KEY = "the server does not know this key, or it is revoked or expired"
"""The detail of KeyRefused for a key, whatever is wrong with it."""


def bearer(header: str | None) -> bytes | None:
    """The token of `Authorization: Bearer TOKEN` (RFC 6750)."""
    return _after("bearer", header)


def basic_password(header: str | None) -> bytes | None:
    """The password of HTTP Basic (RFC 7617), whatever the user's name."""
    encoded = _after("basic", header)
    try:
        _, colon, password = b64decode(encoded or b"", validate=True).partition(b":")
    except binascii.Error:
        return None
    return password if colon else None


def fits(token: bytes | None, key: str) -> bool:
    """Whether the token is the key; the time of the comparison depends on no character."""
    return token is not None and hmac.compare_digest(token, key.encode())


def _after(scheme: str, header: str | None) -> bytes | None:
    """The credentials of a scheme as bytes; a WSGI server decodes headers as Latin-1."""
    named, _, rest = (header or "").partition(" ")
    return rest.strip(" \t").encode("latin-1", "replace") if named.lower() == scheme else None
