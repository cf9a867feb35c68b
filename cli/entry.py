"""The command `callslip`, which prints an advice if only the client is installed."""

import gc
import sys
from importlib import import_module

from callslip.cli import INSTALL

OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""Instead of 700: an import makes many objects and no garbage, so that looking for garbage takes a
fifth of the time of a short command."""


def main() -> None:
    """Run the command line."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        run = import_module("callslip.cli.main").main
    except ModuleNotFoundError as error:
        sys.exit(
            f"callslip: the server and its commands need {error.name}, install them: {INSTALL}"
        )
    run()
