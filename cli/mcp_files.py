"""Files that the MCP server may read: those below one folder, however they are named."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from callslip.errors import InvalidRequest


def open_within(root: Path, given: str) -> BinaryIO:
    """The file at a path from `root`; InvalidRequest for whatever is not a visible file below it.

    Symbolic links are followed first. Where the file lies is asked once more of what was opened,
    as a folder may become a link in between. What lies outside is refused in the same words
    whether it exists or not.
    """
    root = root.resolve()
    try:
        found = (root / given).resolve(strict=True)
        opened = os.open(found, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError, RuntimeError):
        raise _refused(given) from None
    lies = Path(os.readlink(f"/proc/self/fd/{opened}"))  # noqa: PTH115 - of what is open
    if not (stat.S_ISREG(os.fstat(opened).st_mode) and _is_visible(lies, root)):
        os.close(opened)
        raise _refused(given)
    return os.fdopen(opened, "rb")


def _is_visible(path: Path, root: Path) -> bool:
    return path.is_relative_to(root) and not any(
        part.startswith(".") for part in path.relative_to(root).parts
    )


def _refused(given: str) -> InvalidRequest:
    return InvalidRequest(
        f"{given!r} is no file of the folder that this server may read",
        hint="Send the path of a file from that folder on, or its content as text.",
    )
