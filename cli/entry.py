"""The command `callslip`, which prints an advice if only the client is installed."""

import sys
from importlib import import_module

from callslip.cli import INSTALL


def main() -> None:
    """Run the command line."""
    try:
        run = import_module("callslip.cli.main").main
    except ModuleNotFoundError as error:
        sys.exit(
            f"callslip: the server and its commands need {error.name}, install them: {INSTALL}"
        )
    run()
