"""Lines of text as server-sent events and lines of JSON end them.

At `\\n`, `\\r\\n` or `\\r` alone: httpx also ends a line at U+0085, U+2028 and the like, which JSON
may hold as they are.
"""

import re
from collections.abc import Iterator

from callslip.errors import PermanentError

LARGEST_LINE = 64 * 1024 * 1024
"""In bytes."""

_END = re.compile(rb"\r\n|\n|\r")


class LineReader:
    """Lines out of bytes in UTF-8, whose ends are never part of another character."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._after_return = False
        self._is_first = True

    def read(self, part: bytes) -> Iterator[str]:
        """The lines that end in this part; PermanentError where one is too long."""
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
        """The last line, where nothing ended it."""
        if self._size:
            yield self._taken()

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > LARGEST_LINE:
            raise PermanentError(f"a line of the answer is longer than {LARGEST_LINE} bytes")
        if part:
            self._parts.append(part)

    def _taken(self) -> str:
        """The line as text, without the mark that may begin the first one."""
        line = b"".join(self._parts).decode("utf-8", "replace")
        self._parts, self._size = [], 0
        if self._is_first:
            line, self._is_first = line.removeprefix("\ufeff"), False
        return line
