"""Commands beside a stack, in the process of the test: a start of `callslip` costs a second."""

import os
from contextlib import chdir
from unittest.mock import patch

from click.testing import CliRunner, Result
from stack import Stack

from callslip.cli.main import main
from callslip.config.load import get_settings


def invoke(stack: Stack, *arguments: str) -> Result:
    """Run a command with the variables of the stack; raises what would be a traceback."""
    with patch.dict(os.environ, stack.environ, clear=True), chdir(stack.cwd):
        get_settings.cache_clear()
        try:
            return CliRunner().invoke(main, arguments, catch_exceptions=False)
        finally:
            get_settings.cache_clear()
