"""`callslip serve-annotator`: the Document Retriever of DeepPavlov Dream alone, on a port."""

import os

import click

from callslip.cli.shared.output import reporting
from callslip.config import environment, load
from callslip.config.settings import LOOPBACK
from callslip.errors import StartError

PORT = 8165


@click.command(name="serve-annotator")
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen on this address.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=PORT,
    envvar="SERVICE_PORT",
    show_default=True,
    show_envvar=True,
    help="Listen on this port.",
)
@reporting
def serve_annotator_command(host: str, port: int) -> None:
    """Serve the Document Retriever: vectorize_documents, return_candidates, its file server.

    No other process of Callslip is needed. The files are in annotator.folder, or on the server at
    FILE_SERVER_URL; docs/compat-annotator.md has the other variables. The API serves the same.

    \b
    Example:  callslip serve-annotator --port 8165
    """
    from callslip.compat.annotator.configuration import (
        tokenizer,  # only this command imports it, so that others start faster
    )
    from callslip.workers.commands import serving
    from callslip.workers.up import check_port

    os.environ |= environment({"api.host": host, "api.port": port, "api.url": None})
    settings = load().settings
    tokenizer(settings.annotator.config_path)  # reports a wrong file before the first request
    try:
        check_port(settings.api)
    except StartError as error:
        cause = error.__cause__
        why = os.strerror(cause.errno) if isinstance(cause, OSError) and cause.errno else "refused"
        raise StartError(
            f"The annotator cannot listen on port {port} of {host}: {why}.",
            hint="Set --port or SERVICE_PORT to another port.",
        ) from error
    if host not in LOOPBACK and settings.api.key is None:
        click.echo(f"Whoever reaches {host} needs no key: set api.key.", err=True)
    click.echo(f"The annotator listens on {settings.api_url}", err=True)
    command = serving(
        "callslip.api.annotator_wsgi:create_app()", settings.api, settings.api.threads
    )
    os.execv(command[0], command)  # noqa: S606 - the command line is this project's own
