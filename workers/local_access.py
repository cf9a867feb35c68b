"""The admin key of the server that `callslip up` runs, which the commands here use, too."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import SecretStr

from callslip.config.settings import Settings
from callslip.errors import StartError
from callslip.workers.supervision import runfile

GREETED = "greeted"
"""The name of an empty file in data_dir, which exists once `after_ready` has completed."""

FILE = "admin.key"
"""The file in data_dir with the key; only its owner can read it."""


@contextmanager
def private_files() -> Iterator[None]:
    """Make files that their owner alone can read; child processes inherit it."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def write_key(data_dir: Path, text: str) -> None:
    """Replace the file of the key. Raises StartError if it cannot be written."""
    draft = data_dir / f"{FILE}.new"
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600, exist_ok=False)
        with draft.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(data_dir / FILE)
    except OSError as error:
        raise StartError(
            f"The admin key cannot be written to {data_dir / FILE}: {error.strerror}.",
            hint="Make room, then `callslip keys revoke admin` and `callslip keys create`.",
        ) from error


def read_key(data_dir: Path) -> str | None:
    """The key in the file; None without a file."""
    with suppress(OSError):
        return (data_dir / FILE).read_text(encoding="ascii", errors="replace").strip() or None
    return None


def local_key(settings: Settings, url: str) -> SecretStr | None:
    """The key for a command: `api.key`, or the admin key for the server that runs here alone."""
    if settings.api.key is not None:
        return settings.api.key
    data_dir = settings.data_dir.absolute()
    text = read_key(data_dir) if runs_here(data_dir, url) else None
    return None if text is None else SecretStr(text)


def runs_here(data_dir: Path, url: str) -> bool:
    """Whether the server at this URL is the one that `callslip up` runs on the data folder."""
    run = runfile.read(data_dir)
    return run is not None and run.is_running() and run.api_url.rstrip("/") == url.rstrip("/")
