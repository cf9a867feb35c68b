"""Where a socket was made that nobody closed.

The garbage collector may find the socket in any later test, whose failure does not name its origin.
"""

import socket
import sys
import traceback

FRAMES = 25

_made: dict[int, traceback.StackSummary] = {}
"""Where each socket was made, by the socket's id; a new object may get the id of an old one."""

_found: list[str] = []


def follow() -> None:
    """Note from now on where sockets are made, and which of them are never closed."""
    make, report = socket.socket.__init__, sys.unraisablehook

    def noted(sock: socket.socket, *args: object, **named: object) -> None:
        _made[id(sock)] = traceback.StackSummary.extract(
            traceback.walk_stack(None), limit=FRAMES, lookup_lines=False
        )
        make(sock, *args, **named)  # type: ignore[arg-type]

    def reported(unraisable: "sys.UnraisableHookArgs", /) -> None:
        found = unraisable.object
        if isinstance(found, socket.socket) and (stack := _made.get(id(found))):
            lines = "".join(reversed(stack.format()))
            _found.append(f"{found!r} was made at (most recent call last):\n{lines}")
        report(unraisable)

    socket.socket.__init__ = noted  # type: ignore[method-assign]
    sys.unraisablehook = reported


def found() -> str:
    """Each socket that the garbage collector found open since the last call."""
    text = "\n".join(_found)
    _found.clear()
    return text
