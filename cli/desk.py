"""Finding the desk that a command talks to."""

import click

from cli.client import Client
from config import Settings, load
from workers import runfile

url_option = click.option("--url", help="Where the desk runs; default from the settings.")


def connect(url: str | None) -> Client:
    """The desk at this address, or the one that runs here."""
    settings = load().settings
    return Client(url or running_url(settings), key=settings.api.key)


def running_url(settings: Settings) -> str:
    """The desk that `callslip up` started on this data folder, else the one of the settings."""
    found = runfile.read(settings.data_dir.absolute())
    running = found.api_url if found is not None and found.is_running() else None
    return settings.api.url or running or settings.api_url
