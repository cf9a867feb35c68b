"""What the agent's tests share: the local embedder, and a house with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_parts import House, Remembering, house

from callslip.models.e5.tokens import Tokenizer
from callslip.models.embedders.local import E5Embedder


@pytest.fixture(scope="session")
def meaning(models_dir: Path) -> Remembering:
    """The local embedder, for all tests."""
    return Remembering(E5Embedder(models_dir, Tokenizer(models_dir)))


@pytest.fixture
def home(tmp_path: Path, meaning: Remembering) -> Iterator[House]:
    """An empty house without a language model."""
    with house(tmp_path, meaning) as made:
        yield made
