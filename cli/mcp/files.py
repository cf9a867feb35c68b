"""Files that the MCP server may read: those below one folder, whatever their path looks like."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from callslip.errors import InvalidRequest


def open_within(root: Path, path_text: str) -> BinaryIO:
    """Open the file at a path from `root`; raise InvalidRequest for hidden files and files outside.

    Symbolic links are resolved first. The location of the opened file is checked again, because a
    folder can become a link in the meantime. The error for a file outside is the same whether the
    file exists or not.
    """
    root = root.resolve()
    try:
        resolved = (root / path_text).resolve(strict=True)
        opened = os.open(resolved, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError, RuntimeError):
        raise _refused(path_text) from None
    lies = Path(os.readlink(f"/proc/self/fd/{opened}"))  # noqa: PTH115 - of the opened file
    if not (stat.S_ISREG(os.fstat(opened).st_mode) and _is_visible(lies, root)):
        os.close(opened)
        raise _refused(path_text)
    return os.fdopen(opened, "rb")


def _is_visible(path: Path, root: Path) -> bool:
    return path.is_relative_to(root) and not any(
        part.startswith(".") for part in path.relative_to(root).parts
    )


def _refused(path_text: str) -> InvalidRequest:
    return InvalidRequest(
        f"{path_text!r} is no file of the folder that this server may read",
        hint="Send the path of a file from that folder on, or its content as text.",
    )
