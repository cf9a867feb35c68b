"""A library and a folder of its own for each test of sources."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from source_parts import Library, make_library


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    """An empty library."""
    made = make_library(tmp_path)
    with closing(made.ledger):
        yield made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with two files, one below another folder."""
    folder = tmp_path / "root"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("alpha")
    (folder / "deep" / "b.txt").write_text("beta")
    return folder
