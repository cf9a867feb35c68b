"""How the command line speaks: JSON on request, errors as a sentence and what to do."""

import json
import sys
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, NoReturn, ParamSpec, TypeVar

import click

from callslip.errors import CallslipError

P = ParamSpec("P")
R = TypeVar("R")

as_json = click.option("--json", "json_out", is_flag=True, help="Print JSON for programs.")


def emit(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def fail(error: CallslipError) -> NoReturn:
    """Print what is wrong and what to do; exit 1."""
    click.secho(f"Error: {error.detail}", fg="red", err=True)
    if error.advice:
        click.echo(error.advice, err=True)
    sys.exit(1)


def reporting(function: Callable[P, R]) -> Callable[P, R]:
    """Turn Callslip's errors into messages for a person."""

    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except CallslipError as error:
            fail(error)

    return update_wrapper(wrapper, function)
