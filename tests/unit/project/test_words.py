"""Code, docs and help use the field's words: none of the retired ones is left.

The glossary of docs/architecture.md has the terms that stand instead.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = (
    "agent",
    "api",
    "benchmarks",
    "callslip",
    "cli",
    "compat",
    "config",
    "evals",
    "ingestion",
    "languages",
    "models",
    "retrieval",
    "stores",
    "tasks",
    "tools",
    "workers",
)

RETIRED_WORDS = frozenset(
    (
        *("desk", "desks", "floor", "floors", "house", "houses", "shop", "shops", "workshop"),
        *("shelf", "shelves", "knob", "knobs", "parcel", "parcels", "strays"),
        *("nudge", "nudges", "nudged", "clamp", "clamps", "clamped", "lane", "lanes"),
    )
)
"""Not in names, docstrings, comments, messages, templates and pages."""

RETIRED_NAMES = RETIRED_WORDS | frozenset(
    (
        *("place", "places", "asked", "told", "said", "given", "held", "kept", "found"),
        *("basis", "stamp", "departure", "arrival", "former", "atom", "atoms", "stray"),
        *("door", "doors", "ways", "bare", "tend", "leg"),
    )
)
"""Not as a part of a name of a function, a class, a module, an argument or a variable."""

ALLOWED = (
    '"lane"',
    '"nudged_at"',
    '"nudges"',
    "nudged_at",
    "ix_versions_lane",
    "_lane",
    "lane,",
    "`lane`",
    "`nudges`",
)
"""Texts that are stored or sent, and so stay: slugs, task names, columns of the ledger."""

STORED = frozenset(
    (
        "FacetsAsked",
        "Leg",
        "TimeClamp",  # schemas of the OpenAPI document
        "asked_at",
        "basis",
        "legs",
        "stamp",  # fields of JSON on the wire, columns of the ledger
        "DeskDown",  # the former name of ServerDown, which other programs may import
    )
)
"""Names that are stored, sent or imported by other programs, and so stay."""

FROZEN = ("stores/ledger/migrations/ledger/tables_0001.py",)
"""The tables as they were when migrations began."""


def modules() -> list[Path]:
    """The project's own modules, each once."""
    return sorted(
        path
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if not any(parent.is_symlink() for parent in path.relative_to(ROOT).parents if parent.name)
        and not any((ROOT / p).is_symlink() for p in path.relative_to(ROOT).parents)
    )


def pages() -> list[Path]:
    """What people read."""
    return sorted(
        path
        for pattern in (
            "*.md",
            "docs/*.md",
            "examples/*.md",
            "jobs/*.md",
            "api/page/**/*.html",
            "api/page/**/*.js",
            "api/page/**/*.css",
            "agent/prompts/*.md",
        )
        for path in ROOT.glob(pattern)
    )


def parts(name: str) -> list[str]:
    """`corpusStamp`, `corpus_stamp` and `CorpusStamp` as `corpus`, `stamp`."""
    return [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name that the module itself gives, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield node.lineno, name


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Strings and comments of a module, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            yield from enumerate(token.string.splitlines(), token.start[0])


def _retired_name(name: str) -> bool:
    """Whether a name has a retired word; errors of what was not found are `…NotFound`."""
    words = set(parts(name.removesuffix("NotFound")))
    return bool(words & RETIRED_NAMES) and name not in STORED


def retired_in(line: str) -> set[str]:
    """The retired words of a line of prose."""
    for phrase in ALLOWED:
        line = line.replace(phrase, "")
    return {word for word in re.findall(r"[a-z]+", line.lower()) if word in RETIRED_WORDS}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_and_no_text_of_the_code_has_a_retired_word(package: str) -> None:
    wrong = []
    for path in modules():
        where = path.relative_to(ROOT)
        if where.parts[0] != package or where.as_posix() in FROZEN:
            continue
        if set(parts(path.stem)) & RETIRED_NAMES:
            wrong.append(f"{where}: the file's name")
        text = path.read_text(encoding="utf-8")
        for line, name in names(ast.parse(text)):
            if _retired_name(name):
                wrong.append(f"{where}:{line}: {name}")
        for line, words in prose(text):
            wrong += [f"{where}:{line}: {word}" for word in sorted(retired_in(words))]
    assert not wrong, f"{len(wrong)} retired words:\n" + "\n".join(wrong)


def test_no_name_and_no_docstring_of_the_tests_has_a_retired_word() -> None:
    """Texts of documents and questions may have them: a reader may reserve a desk."""
    wrong = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path.is_relative_to(ROOT / "tests" / "data") or path == Path(__file__):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        where = path.relative_to(ROOT)
        for line, name in names(tree):
            wrong += [f"{where}:{line}: {name}"] * bool(set(parts(name)) & RETIRED_WORDS)
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                retired = retired_in(ast.get_docstring(node) or "")
                wrong += [
                    f"{where}: docstring of {getattr(node, 'name', 'the file')}: {retired}"
                ] * (bool(retired))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_has_a_retired_word(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    wrong = [
        f"{at}: {word}" for at, line in enumerate(lines, 1) for word in sorted(retired_in(line))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_glossary_has_at_most_25_words_of_the_field() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.split("## Glossary", 1)[1].split("\n## ", 1)[0]
    words = re.findall(r"^\| \*?\*?([^|*]+?)\*?\*? \|", section, re.M)[2:]
    assert 10 <= len(words) <= 25
    assert not {part for word in words for part in parts(word)} & RETIRED_NAMES
