"""The command `callslip`, which says so where only the client is installed."""

import sys
from importlib import import_module

HOW = "pip install 'callslip[server]'"


def main() -> None:
    """Run the command line."""
    try:
        run = import_module("cli.main").main
    except ModuleNotFoundError as error:
        sys.exit(f"callslip: the desk and its commands need {error.name}, install them: {HOW}")
    run()
