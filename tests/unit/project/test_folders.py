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


def test_no_folder_has_more_modules_than_one_can_keep_in_mind() -> None:
    tops = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    modules = (
        path.relative_to(ROOT)
        for top in sorted(tops)
        for path in (ROOT / top).rglob("*.py")
        if top != "tests" and not (ROOT / top).is_symlink()
    )
    counts = Counter(
        module.parent.as_posix()
        for module in modules
        if not any((ROOT / parent).is_symlink() for parent in module.parents)
    )
    assert {folder: count for folder, count in counts.items() if count > MOST_FILES} == {}
