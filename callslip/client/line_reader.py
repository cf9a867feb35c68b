"""Splits bytes into the lines of server-sent events and of JSON Lines.

A line ends at `\\n`, `\\r\\n` or `\\r` alone. httpx also ends a line at U+0085, U+2028 and other
characters, which JSON may contain unescaped.
"""

import re
from collections.abc import Iterator

from callslip.errors import PermanentError

LARGEST_LINE = 64 * 1024 * 1024
"""The most bytes of a line."""

_END = re.compile(rb"\r\n|\n|\r")


class LineReader:
    """Splits UTF-8 bytes into lines; a line end's bytes are never part of another character."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._after_return = False
        self._is_first = True

    def read(self, part: bytes) -> Iterator[str]:
        """Yield the lines that end in this part; PermanentError if one is over LARGEST_LINE."""
        if not part:
            return
        if self._after_return:
            part = part.removeprefix(b"\n")
        self._after_return = part.endswith(b"\r")
        *ended, rest = _END.split(part)
        for line in ended:
            self._keep(line)
            yield self._taken()
        self._keep(rest)

    def rest(self) -> Iterator[str]:
        """Yield the last line, if it has no line end."""
        if self._size:
            yield self._taken()

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > LARGEST_LINE:
            raise PermanentError(f"a line of the answer is longer than {LARGEST_LINE} bytes")
        if part:
            self._parts.append(part)

    def _taken(self) -> str:
        """The line as text; the first line loses its byte order mark."""
        line = b"".join(self._parts).decode("utf-8", "replace")
        self._parts, self._size = [], 0
        if self._is_first:
            line, self._is_first = line.removeprefix("\ufeff"), False
        return line
