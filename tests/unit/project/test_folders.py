"""Imports make no circle, and a folder holds what one person can keep in mind."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[3]
MOST_FILES = 20
WIDE = {
    "docs": "README.md lists its pages by what a reader wants to know",
}
"""Folders with more files, each with the reason."""
MOST_LINES = 400
LONG = {
    "stores/ledger/migrations/ledger/tables_0001.py": "stays as it was when the revision was made",
}
"""Longer modules, each with the reason why it is in one piece."""


@cache
def graph() -> grimp.ImportGraph:
    """Every import, also those under TYPE_CHECKING and within functions."""
    return grimp.build_graph("callslip", "benchmarks", "tools")


def circle(nodes: Iterable[str], imports: Callable[[str], Iterable[str]]) -> list[str]:
    """A circle among the nodes, or an empty list."""
    try:
        TopologicalSorter({node: set(imports(node)) - {node} for node in nodes}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circle(graph().modules, graph().find_modules_directly_imported_by) == []


@pytest.mark.parametrize("package", sorted(m for m in graph().modules if graph().find_children(m)))
def test_no_folder_imports_itself_by_way_of_its_siblings(package: str) -> None:
    children = sorted(graph().find_children(package))
    owner = {
        module: child for child in children for module in (child, *graph().find_descendants(child))
    }

    def imports(child: str) -> set[str]:
        modules = (module for module, owned_by in owner.items() if owned_by == child)
        return {
            owner[target]
            for module in modules
            for target in graph().find_modules_directly_imported_by(module)
            if target in owner
        }

    assert circle(children, imports) == []


def files() -> list[Path]:
    """The files of the code, its tests and its pages, by their paths from the root."""
    tops = [path.parent for path in ROOT.glob("*/__init__.py")]
    return [
        path.relative_to(ROOT)
        for top in (*tops, ROOT / "docs", ROOT / "tests")
        for path in top.rglob("*")  # does not follow links
        if path.is_file() and "__pycache__" not in path.parts
    ]


def test_no_folder_has_more_files_than_one_can_keep_in_mind() -> None:
    counts = Counter(file.parent.as_posix() for file in files())
    assert {folder for folder, count in counts.items() if count > MOST_FILES} == WIDE.keys()


def test_no_module_is_longer_than_one_can_read_at_a_time() -> None:
    code = [file for file in files() if file.suffix == ".py" and file.parts[0] != "tests"]
    lengths = {m.as_posix(): len((ROOT / m).read_text("utf-8").splitlines()) for m in code}
    long = {name for name, length in lengths.items() if length > MOST_LINES}
    assert long == LONG.keys()
