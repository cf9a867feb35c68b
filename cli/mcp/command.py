"""`callslip mcp`: offers the API as tools for language models, by the Model Context Protocol."""

import logging
import signal
import sys
from functools import partial
from pathlib import Path

import click

from callslip.cli.shared.output import named, reporting
from callslip.cli.shared.server import client_of, running_url, url_option
from callslip.config import load
from callslip.config.settings import LOOPBACK
from callslip.workers.local_access import local_key

PORT = 8766


@click.command(name="mcp")
@click.option("--http", is_flag=True, help="Streamable HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: listen on this.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="With --http; 0 takes a free one.",
)
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    help="With --http: a name by which clients call this machine; once for each.",
)
@click.option("-c", "--collection", callback=named, help="Only this one.  [default: any]")
@click.option("--tenant", help="Only this one's documents.  [default: any]")
@click.option(
    "--files",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Files below this folder may be ingested by their paths; not with --http.",
)
@url_option
@reporting
def mcp_command(
    http: bool,
    host: str,
    port: int,
    names: tuple[str, ...],
    collection: str | None,
    tenant: str | None,
    files: Path | None,
    url: str | None,
) -> None:
    """Serve the API to language models over MCP: search, answer, get_document, ingest, feedback.

    A client such as Claude Desktop starts this command and communicates over standard input and
    output; docs/mcp.md has its configuration. The server must be running.

    \b
    Example:  callslip mcp --collection handbook
              callslip mcp --http --port 8766
    """
    if http and files is not None:
        raise click.UsageError("--files is for standard input and output, not for --http.")
    from callslip.cli.mcp.scope import Scope
    from callslip.cli.mcp.server import make_server  # the SDK takes a second to import

    settings = load().settings
    logging.basicConfig(
        stream=sys.stderr,
        level=settings.log.level,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
    if settings.log.level == "DEBUG":
        logging.getLogger("mcp").setLevel(logging.INFO)  # lower levels may show messages
    key = settings.api.key
    scope = Scope(collection, tenant or None, files)
    api_url = url or running_url(settings)
    # Over HTTP each client sends a key of its own, unless the settings have one.
    with client_of(api_url, key if http else local_key(settings, api_url)) as client:
        server = make_server(client, scope, settings.log)
        if not http:
            # otherwise a read of standard input cannot be interrupted
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            server.run("stdio")
            return
        from callslip.cli.mcp.http import serve

        if key is None and host not in LOOPBACK:
            click.echo(f"Whoever reaches {host} needs no key: set api.key.", err=True)
        secret = key.get_secret_value() if key else None
        serve(server, host, port, names, secret, partial(click.echo, err=True))
