"""Reads URLs from outside."""

import httpx


def parse_url(text: str) -> httpx.URL:
    """The URL that a text writes.

    Raises httpx.InvalidURL for every text that is none. httpx itself decodes the host only when it
    is read, and then raises another error, a UnicodeError.
    """
    url = httpx.URL(text)
    try:
        _ = url.host
    except UnicodeError as error:
        raise httpx.InvalidURL(f"Invalid IDNA hostname: {error}") from None
    return url
