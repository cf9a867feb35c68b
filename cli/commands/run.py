"""`callslip run`: runs one process of Callslip in the foreground."""

import os
from typing import Any

import click

from callslip.cli.shared.output import reporting
from callslip.config import load
from callslip.workers.commands import ROLES, argv


@click.command(name="run")
@click.argument("role", type=click.Choice(ROLES))
@reporting
def run_command(role: Any) -> None:
    """Run one process of Callslip in the foreground, for containers and service managers.

    \b
    Example:  callslip run ingest
    """
    from callslip.tasks.broker import broker_url
    from callslip.workers.local_settings import upgrade_ledger

    settings = load().settings
    broker_url(settings)  # reports a missing setting better than the process would
    upgrade_ledger(settings)
    command = argv(role, settings)
    os.execv(command[0], command)  # noqa: S606 - the command line is this project's own
