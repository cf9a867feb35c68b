"""Waits for a worker to take up what a command asks for, and gives up where none does."""

import time
from contextlib import suppress

import click

from callslip.cli.shared.output import aside, many
from callslip.client import Client
from callslip.errors import CallslipError, ServerDown
from callslip.vocabulary import UNDERWAY

WARNING_SECONDS = 15.0
"""After this time a message says that no worker has begun."""

LONGEST_SECONDS = 120.0
"""After this time a command gives up. Workers look for work every few seconds."""

QUIET_SECONDS, REPEAT_SECONDS = 2.0, 30.0
"""The times after which a message says what a command waits for, first and then again."""

MOST_COUNTED = 500
"""The newest documents of a collection among which those that wait are counted: a page of them."""


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


class Turn:
    """Says with how many other documents those of a command wait for a free worker."""

    def __init__(self, client: Client, collection: str, tenant: str, *, shown: bool) -> None:
        self._client, self._collection, self._tenant = client, collection, tenant
        self._next = time.monotonic() + QUIET_SECONDS if shown else float("inf")
        self._last = ""

    def tell(self, own: int) -> None:
        """Print the number on standard error if a report is due and the number has changed.

        `own` is the number of documents of the command itself.
        """
        if time.monotonic() < self._next:
            return
        line = f"Waits{self._others(own)} for a free worker."
        if line != self._last:
            self._last = line
            aside(line)
        self._next = time.monotonic() + REPEAT_SECONDS

    def _others(self, own: int) -> str:
        """The number of others, in words; nothing if there is none, or the caller sees none."""
        with suppress(CallslipError):
            page = self._client.list_documents(
                self._collection, tenant=self._tenant or None, limit=MOST_COUNTED
            )
            others = sum(document.state in UNDERWAY for document in page.documents) - own
            if others > 0:
                least = "at least " if page.next_before is not None else ""
                return f" with {least}{many(others, 'other document')} of {self._collection!r}"
        return ""
