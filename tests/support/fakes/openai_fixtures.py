"""A language model's server for each test that asks for one."""

from collections.abc import Iterator

import pytest
from openai_server import OpenAIServer


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    """A server without a script."""
    with OpenAIServer() as server:
        yield server
