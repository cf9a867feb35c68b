"""Fixtures of every test folder."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from stack import MakeStack, Stack, new_home


@pytest.fixture(scope="session")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all stacks share the prepared model, which takes seconds to build."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Stack]:
    """One running Callslip for all tests that leave it running; use collections of your own."""
    stack = Stack(new_home(tmp_path_factory, models_dir)).start()
    yield stack
    stack.stop()


@pytest.fixture
def make_stack(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[MakeStack]:
    """Makes stacks, not started yet, that a test may break; each is stopped at its end."""
    made: list[Stack] = []

    def make(overrides: Mapping[str, str]) -> Stack:
        made.append(Stack(new_home(tmp_path_factory, models_dir), overrides))
        return made[-1]

    yield make
    for stack in made:
        stack.stop()
