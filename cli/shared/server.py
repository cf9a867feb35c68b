"""Connects a command to its server."""

from collections.abc import Iterator
from contextlib import contextmanager

import click
from pydantic import SecretStr

from callslip.client import NO_RETRIES, Client
from callslip.config import Loaded, Settings, load
from callslip.errors import KeyRefused
from callslip.workers import local_access
from callslip.workers.local_access import local_key
from callslip.workers.supervision import runfile

url_option = click.option("--url", help="Where the server runs; default from the settings.")


@contextmanager
def connect(url: str | None) -> Iterator[Client]:
    """A client of the server at this URL, or of the local server. KeyRefused explains the key."""
    loaded = load()
    server = url or running_url(loaded.settings)
    with (
        explaining_key(loaded, server),
        client_of(server, local_key(loaded.settings, server)) as client,
    ):
        yield client


@contextmanager
def explaining_key(loaded: Loaded, url: str) -> Iterator[None]:
    """Let KeyRefused say where the key came from, or where the command looked for one."""
    try:
        yield
    except KeyRefused as error:
        raise KeyRefused(error.detail, hint=_key_advice(loaded, url)) from error


def _key_advice(loaded: Loaded, url: str) -> str:
    folder = loaded.settings.data_dir.absolute()
    if loaded.settings.api.key is not None:
        return f"The key came from {loaded.origins['api.key']}: correct it there, or remove it."
    if local_key(loaded.settings, url) is not None:
        return (
            f"The key came from {folder / local_access.FILE}: make another one with"
            " `callslip keys create NAME --permission admin`, and set CALLSLIP_API__KEY to it."
        )
    if local_access.runs_here(folder, url):
        return (
            f"The server at {url} runs on the data folder {folder}, which has no"
            f" {local_access.FILE}: `callslip keys create NAME --permission admin` makes a key"
            " there."
        )
    return (
        f"No key is set, and no server runs at {url} on the data folder {folder}. Run the command"
        " in the folder in which `callslip up` runs, or set CALLSLIP_DATA_DIR to its data folder,"
        " or CALLSLIP_API__KEY to a key of `callslip keys create NAME --permission admin`."
    )


def client_of(url: str, key: SecretStr | None = None, *, timeout: float = 120.0) -> Client:
    """Return a client that never repeats a request, so that a user sees an error at once."""
    return Client(url, key=key, timeout=timeout, retries=NO_RETRIES)


def running_url(settings: Settings) -> str:
    """The URL of the server that `callslip up` started on this data folder, or of the settings."""
    run_file = runfile.read(settings.data_dir.absolute())
    running = run_file.api_url if run_file is not None and run_file.is_running() else None
    return settings.api.url or running or settings.api_url
