"""`callslip up`: runs all processes on this machine, in one process tree."""

import os
import shutil
import sys
from functools import partial
from pathlib import Path

import click

from callslip.cli.shared.output import as_json, emit, reporting
from callslip.config import Settings, load
from callslip.vocabulary import DEFAULT_COLLECTION
from callslip.workers.local_access import local_key

EXAMPLES = Path(__file__).resolve().parents[3] / "jobs" / "examples.jsonl"


@click.command(name="up")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port of the server; 0 takes a free one."
)
@click.option("--examples/--no-examples", default=True, help="Ingest the examples the first time.")
@click.option("--open", "is_open", is_flag=True, help="Ask for no key; on loopback alone.")
@as_json
@reporting
def up_command(port: int | None, examples: bool, is_open: bool, json_out: bool) -> None:
    """Start everything on this machine and keep it running until Ctrl-C.

    The first start makes an admin key and prints it. It is in `admin.key` of the data folder, where
    commands that run here find it; each start prints a link that logs a browser in.

    With --json it prints one object once everything is ready; later messages go to standard
    error.

    \b
    Example:  callslip up --port 9000
    """
    from callslip.workers.up import (
        run as run_all,  # imports every part; the other commands start faster without it
    )

    if port is not None:
        os.environ["CALLSLIP_API__PORT"] = str(port)
    if is_open:
        os.environ["CALLSLIP_API__OPEN"] = "true"
    loaded = load()
    run_all(
        loaded,
        echo=partial(click.echo, err=json_out),
        after_ready=_Welcome(examples, json_out, loaded.settings),
    )


class _Welcome:
    """The output when every part is ready, for people or as JSON."""

    def __init__(self, examples: bool, json_out: bool, settings: Settings) -> None:
        self._examples, self._json_out, self._settings = examples, json_out, settings

    def __call__(self, url: str, first_time: bool) -> None:
        report, key = None, local_key(self._settings, url)
        may_ingest = key is not None or self._settings.api.open
        if self._examples and first_time and may_ingest and EXAMPLES.is_file():
            # The client takes half a second to import, and most starts do not need it.
            from callslip.cli.shared.server import client_of
            from callslip.cli.shared.upload import ingest, manifest_sources, show_report

            with client_of(url, key) as client:
                sources = manifest_sources(EXAMPLES, DEFAULT_COLLECTION)
                report = ingest(client, DEFAULT_COLLECTION, sources, show_bar=not self._json_out)
        if self._json_out:
            emit({"url": url, "pid": os.getpid(), "examples": report and report.as_json()})
            return
        if report:
            show_report(report)
        click.secho(f"\nCallslip is ready: {url}", bold=True)
        from callslip.workers.first_key import login_link  # imports the ledger

        if link := login_link(self._settings, url):
            click.echo(f"Page:    {link}  (logs in once, within an hour)")
        if not may_ingest:
            click.echo(
                "Keys:    the server knows keys, but none is in this folder:"
                f" {_program()} keys create NAME --permission admin"
            )
        click.echo(f'Search:  {_program()} search "how long is parental leave?"')
        click.echo(f'Ask:     {_program()} ask "how long is parental leave?"')
        click.echo("Stop:    Ctrl-C\n")


def _program() -> str:
    """The command line of this program for the same folder."""
    if shutil.which("callslip"):
        return "callslip"
    program = Path(sys.argv[0]).absolute()
    here = Path.cwd()
    return str(program.relative_to(here) if program.is_relative_to(here) else program)
