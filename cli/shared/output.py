"""Output of the commands: JSON on request, errors as a sentence and an advice."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import update_wrapper
from typing import Any, NoReturn, ParamSpec, TypeVar
from unicodedata import east_asian_width

import click

from callslip.errors import CallslipError
from callslip.vocabulary import NAME

P = ParamSpec("P")
R = TypeVar("R")

as_json = click.option("--json", "json_out", is_flag=True, help="Print JSON for programs.")


def emit(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def named(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Validate the name of a collection or a source: a callback of Click."""
    if value is not None and not re.fullmatch(NAME, value):
        raise click.BadParameter("Latin letters, digits, `.`, `_`, `-`; at most 64")
    return value


def many(count: int, thing: str) -> str:
    """A number with its noun: `1 document`, `2 documents`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def figures(values: Mapping[str, float | Sequence[float]]) -> str:
    """Numbers by name, for people; of a pair both: `itself_first 1 before, 0.9 now`."""
    return ", ".join(
        f"{name} {value:g}"
        if isinstance(value, float | int)
        else f"{name} {value[0]:g} before, {value[1]:g} now"
        for name, value in values.items()
    )


def when(seconds: float) -> str:
    """A time in the time zone of this machine."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S}"


def columns(text: str) -> int:
    """The number of terminal columns of a text: a Korean letter takes two columns."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def aligned(rows: Sequence[Sequence[str]], *, left: int) -> Iterator[str]:
    """Yield a line per row: the first `left` columns are left-aligned, the others right-aligned."""
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        blanks = [" " * (width - columns(text)) for text, width in zip(row, widths, strict=True)]
        cells = [
            text + blank if n < left else blank + text
            for n, (text, blank) in enumerate(zip(row, blanks, strict=True))
        ]
        yield "  ".join(cells)


def shortened(text: str, most: int) -> str:
    """Return the text as one line of at most `most` characters; `…` stands for what is left out."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def aside(text: str) -> None:
    """Print a line on standard error, in a terminal instead of the line of a progress bar."""
    click.echo(f"\r\x1b[K{text}" if sys.stderr.isatty() else text, err=True)


def fail(error: CallslipError) -> NoReturn:
    """Print an error and its advice; exit with code 1."""
    click.secho(f"Error: {error.detail}", fg="red", err=True)
    if error.advice:
        click.echo(error.advice, err=True)
    sys.exit(1)


def reporting(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a command: print Callslip's errors as messages."""

    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except CallslipError as error:
            fail(error)

    return update_wrapper(wrapper, function)
