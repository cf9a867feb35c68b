"""`callslip config`: the current settings and the origin of each value."""

import click

from callslip.cli.shared.output import as_json, emit, reporting
from callslip.config import describe, load


@click.command(name="config")
@as_json
@reporting
def config_command(json_out: bool) -> None:
    """Print every setting in force, secrets masked, and where each value came from.

    \b
    Example:  callslip config | grep search
    """
    lines = describe(load())
    if json_out:
        emit([line._asdict() for line in lines])
        return
    width = max(len(line.key) for line in lines)
    shown = max(len(line.value) for line in lines)
    for line in lines:
        click.echo(f"{line.key:{width}}  {line.value:{shown}}  {line.origin}")
