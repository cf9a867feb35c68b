"""Opens an installation and its backups for commands that work without the server."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from filelock import FileLock, Timeout

from callslip.config.settings import Settings
from callslip.errors import Conflict, SettingsError
from callslip.stores.backup.destination import Destination
from callslip.stores.backup.making import Progress
from callslip.tasks.composition import Context

SHORTEST_KEY = 12

key_file_option = click.option(
    "--key-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the passphrase; default backup.key.",
)


def open_destination(
    settings: Settings, url: str | None, key_file: Path | None, *, make: bool = False
) -> Destination:
    """The destination of a command, or that of the settings. Raises SettingsError without both."""
    url = url or settings.backup.to
    if url is None:
        raise SettingsError(
            "No destination is named.", hint="Name a folder or a URL, or set backup.to."
        )
    if "://" not in url and Path(url).resolve() == settings.data_dir.resolve():
        raise SettingsError(
            f"{url} is the data folder of Callslip itself.",
            hint="Name another folder, on another disk if there is one.",
        )
    key = None if settings.backup.key is None else settings.backup.key.get_secret_value()
    if key_file is not None:
        try:
            key = key_file.read_text(encoding="utf-8").strip()
        except UnicodeDecodeError:
            raise SettingsError(f"{key_file} is not UTF-8.", hint="") from None
    if key is not None and len(key) < SHORTEST_KEY:
        raise SettingsError(f"A passphrase has at least {SHORTEST_KEY} characters.", hint="")
    return Destination(url, key, make=make)


class Turns:
    """The conversations of a context, which import LangGraph at their first use."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context.conversations, name)


@contextmanager
def open_context(
    settings: Settings, store_kinds: tuple[str, ...] | None = None
) -> Iterator[Context]:
    """The parts of this installation without a broker; closes those that were made."""
    context = Context(settings, local=True, store_kinds=store_kinds)
    try:
        yield context
    finally:
        context.close()


@contextmanager
def counter(json_out: bool) -> Iterator[Progress]:
    """A line with the phase and its count, in a terminal alone; none with --json."""
    shown = not json_out and sys.stderr.isatty()
    counts: dict[str, int] = {}
    shown_at = 0.0

    def progress(phase: str, done: int) -> None:
        nonlocal shown_at
        counts[phase] = counts.get(phase, 0) + done
        if shown and time.monotonic() > shown_at + 0.2:
            shown_at = time.monotonic()
            click.echo(f"\r{phase}: {counts[phase]:,}   ", err=True, nl=False)

    try:
        yield progress
    except KeyboardInterrupt:
        click.echo("\nStopped. The same command goes on where this one stopped.", err=True)
        sys.exit(130)
    finally:
        if shown_at:
            click.echo("\r" + " " * 40 + "\r", err=True, nl=False)


@contextmanager
def backup_lock(settings: Settings) -> Iterator[None]:
    """One backup, or purge of backups, at a time. Raises Conflict if another one runs."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with FileLock(settings.data_dir / "backup.lock", timeout=0):
            yield
    except Timeout:
        raise Conflict("another backup of this installation is running", hint="") from None
