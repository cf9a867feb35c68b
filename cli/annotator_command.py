"""`callslip serve-annotator`: the Document Retriever of DeepPavlov Dream, alone on a port."""

import os

import click

from callslip.errors import StartError
from cli.output import reporting
from config import environment, load
from config.settings import LOOPBACK

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

    Nothing else of Callslip need run. Files lie in annotator.folder, or where FILE_SERVER_URL says;
    docs/compat-annotator.md has the other variables. The running desk serves the same.

    \b
    Example:  callslip serve-annotator --port 8165
    """
    from compat.annotator.configured import tokenizer  # the other commands start faster without
    from workers.commands import serving
    from workers.up import check_port

    os.environ |= environment({"api.host": host, "api.port": port, "api.url": None})
    settings = load().settings
    tokenizer(settings.annotator.config_path)  # says what is wrong before the first request does
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
    command = serving("api.annotator_wsgi:create_app()", settings.api, settings.api.threads)
    os.execv(command[0], command)  # noqa: S606 - the command line is this project's own
