"""What the agent's tests share: the local embedder, and a setup with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_parts import Remembering, Setup, make_setup

from callslip.models.e5.tokens import Tokenizer
from callslip.models.embedders.local import E5Embedder


@pytest.fixture(scope="session")
def meaning(models_dir: Path) -> Remembering:
    """The local embedder, for all tests."""
    return Remembering(E5Embedder(models_dir, Tokenizer(models_dir)))


@pytest.fixture
def home(tmp_path: Path, meaning: Remembering) -> Iterator[Setup]:
    """An empty setup without a language model."""
    with make_setup(tmp_path, meaning) as made:
        yield made
