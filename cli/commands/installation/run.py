"""`callslip run`: runs one process of Callslip in the foreground."""

import os
from typing import Any

import click

from callslip.cli.shared.output import reporting
from callslip.config import load
from callslip.workers.commands import FEW_ARENAS, ROLES, argv, keyword_environment


@click.command(name="run")
@click.argument("role", type=click.Choice(ROLES))
@reporting
def run_command(role: Any) -> None:
    """Run one process of Callslip in the foreground, for containers and service managers.

    `keyword` is the service of the keyword index beside Chroma, for parts on several machines.

    \b
    Example:  callslip run ingest
    """
    from callslip.stores.fulltext.service import check_key
    from callslip.tasks.shared.broker import broker_url
    from callslip.workers.first_key import make_first_key
    from callslip.workers.local_access import FILE, private_files
    from callslip.workers.local_settings import upgrade_ledger

    settings = load().settings
    if role == "keyword":
        command = argv(role, settings)
        os.environ |= keyword_environment(settings)
        with private_files():
            os.execv(command[0], command)  # noqa: S606 - as below
    broker_url(settings)  # reports a missing setting better than the process would
    check_key(settings.keyword)
    with private_files():
        upgrade_ledger(settings)
        if role == "api" and (key := make_first_key(settings)):
            click.echo(f"Admin key, also in {settings.data_dir / FILE}: {key}")
        command = argv(role, settings)
        environ = {**FEW_ARENAS, **os.environ}
        os.execve(command[0], command, environ)  # noqa: S606 - the command line is this project's own
