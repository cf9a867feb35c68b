"""Generates the synchronous half of `callslip.client` from the asynchronous half.

`python -m tools.client_code` writes the modules, and a test compares them with the generator's
output.
"""

import io
import subprocess
import sys
import tokenize
from pathlib import Path

CLIENT = Path(__file__).resolve().parent.parent / "callslip" / "client"

LEFT_OUT = frozenset({"annotator", "faq", "invokers"})
"""Tags of the adapters; the systems that they serve have their own clients."""

_IN_TURN = {
    "AsyncClient": "Client",
    "AsyncDeadline": "Deadline",
    "AsyncTransport": "Transport",
    "AsyncIterator": "Iterator",
    "AsyncGenerator": "Generator",
    "asynccontextmanager": "contextmanager",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "aclose": "close",
    "aiter_lines": "iter_lines",
    "aiter_raw": "iter_raw",
    "aiter_bytes": "iter_bytes",
    "aread": "read",
    "aiterator": "iterator",
    "anyio": "time",
    "_async": "_sync",
    "AsyncBaseTransport": "BaseTransport",
    "StopAsyncIteration": "StopIteration",
}
"""Asynchronous names, mapped to their synchronous counterparts."""


def without_await(source: str) -> str:
    """Return the synchronous form of an asynchronous module."""
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    lines = source.splitlines(keepends=True)
    for token in reversed(tokens):
        row, begin, end = token.start[0] - 1, token.start[1], token.end[1]
        if token.type == tokenize.NAME and token.string in ("async", "await"):
            lines[row] = lines[row][:begin] + lines[row][end:].removeprefix(" ")
        elif token.type == tokenize.NAME and token.string in _IN_TURN:
            lines[row] = lines[row][:begin] + _IN_TURN[token.string] + lines[row][end:]
        elif token.type == tokenize.STRING and token.string.startswith('"""'):
            for at in range(row, token.end[0]):
                lines[at] = lines[at].replace("await ", "").replace("AsyncClient", "Client")
                lines[at] = lines[at].replace("async ", "")
    return _formatted("".join(lines))


def clients() -> dict[Path, str]:
    """Return the modules of `_sync`, generated from `_async`, by path."""
    files = {}
    for path in sorted((CLIENT / "_async").glob("*.py")):
        files[CLIENT / "_sync" / path.name] = without_await(path.read_text(encoding="utf-8"))
    return files


def _formatted(text: str) -> str:
    """Return the source in the project's format, which ruff applies."""
    ruff = Path(sys.executable).with_name("ruff")
    program = str(ruff) if ruff.exists() else "ruff"
    arguments = ["--no-cache", "--quiet", "--stdin-filename", str(CLIENT / "client.py"), "-"]
    for step in (["check", "--fix-only", "--unsafe-fixes", "--select", "I,F401,UP"], ["format"]):
        text = subprocess.run(
            [program, *step, *arguments], input=text, capture_output=True, text=True, check=True
        ).stdout
    return text


def main() -> None:
    """Write the generated modules."""
    for path, text in clients().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
