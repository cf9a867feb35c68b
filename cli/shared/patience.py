"""Waits for a worker to take up what a command asks for, and gives up where none does."""

import time

import click

from callslip.errors import ServerDown

WARNING_SECONDS = 15.0
"""After this time a message says that no worker has begun."""

LONGEST_SECONDS = 120.0
"""After this time a command gives up. Workers look for work every few seconds."""


class Patience:
    """Measures how long no worker has taken up a request."""

    def __init__(self, worker: str, hint: str) -> None:
        self._worker, self._hint = worker, hint
        self._since, self._warned = time.monotonic(), False

    def renew(self) -> None:
        """Begin to measure anew, because a worker has taken the request up."""
        self._since = time.monotonic()

    def check(self) -> None:
        """Warn once after WARNING_SECONDS. Raises ServerDown after LONGEST_SECONDS."""
        waited = time.monotonic() - self._since
        if waited > LONGEST_SECONDS:
            raise ServerDown(
                f"no {self._worker} worker has begun within {LONGEST_SECONDS:.0f} s",
                hint=self._hint,
            )
        if waited > WARNING_SECONDS and not self._warned:
            self._warned = True
            text = f"No {self._worker} worker has taken it up yet; is Callslip running?"
            click.echo(text, err=True)
