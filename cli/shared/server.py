"""Connects a command to its server."""

import click
from pydantic import SecretStr

from callslip.client import NO_RETRIES, Client
from callslip.config import Settings, load
from callslip.workers.local_access import local_key
from callslip.workers.supervision import runfile

url_option = click.option("--url", help="Where the server runs; default from the settings.")


def connect(url: str | None) -> Client:
    """Return a client of the server at this URL, or of the local server."""
    settings = load().settings
    server = url or running_url(settings)
    return client_of(server, local_key(settings, server))


def client_of(url: str, key: SecretStr | None = None, *, timeout: float = 120.0) -> Client:
    """Return a client that never repeats a request, so that a user sees an error at once."""
    return Client(url, key=key, timeout=timeout, retries=NO_RETRIES)


def running_url(settings: Settings) -> str:
    """The URL of the server that `callslip up` started on this data folder, or of the settings."""
    run_file = runfile.read(settings.data_dir.absolute())
    running = run_file.api_url if run_file is not None and run_file.is_running() else None
    return settings.api.url or running or settings.api_url
