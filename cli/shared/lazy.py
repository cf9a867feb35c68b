"""A group of commands whose modules are imported when one of them runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from callslip.cli import INSTALL


@dataclass(frozen=True)
class LazyCommand:
    """The module and attribute of a command, and the first paragraph of its help."""

    target: str
    """`module:attribute`."""
    summary: str

    def load(self) -> click.Command:
        """Import the command; raise ClickException if a package that it needs is not installed."""
        module, _, attribute = self.target.partition(":")
        try:
            command: click.Command = getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            raise click.ClickException(
                f"this command needs {error.name}, install it: {INSTALL}"
            ) from error
        return command


class LazyGroup(click.Group):
    """Lists its commands and their summaries from a table, without an import."""

    def __init__(self, *args: Any, table: Mapping[str, LazyCommand], **more: Any) -> None:
        super().__init__(*args, **more)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return every name, in order."""
        return sorted(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command by its name; return None if there is none."""
        if cmd_name not in self.commands:
            lazy = self.table.get(cmd_name)
            if lazy is None:
                return None
            self.add_command(lazy.load(), cmd_name)
        return self.commands[cmd_name]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the error of an unknown name has a similar one."""
        near = get_close_matches(args[0], self.table, n=1)
        if near and args[0] not in self.table:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands as click does, from the table."""
        names = self.list_commands(ctx)
        limit = formatter.width - 6 - max(map(len, names))
        rows = [
            (name, click.Command(name, help=self.table[name].summary).get_short_help_str(limit))
            for name in names
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
