"""Finds the files that paths, folders and globs name."""

import glob
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import click

from callslip.cli.shared.output import many
from callslip.errors import PermanentError


@dataclass(frozen=True)
class Source:
    """A file to send, and the name of its document: the path below the named folder."""

    path: Path
    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of an upload: `title`, `properties`, `allow_duplicate`."""


def find_files(paths: Iterable[str]) -> list[Source]:
    """Find the files that paths, folders and globs name, each once, without hidden files.

    Print a count of what else is below the folders and globs. Raises PermanentError for a path that
    names no file, and for two files that would have one name.
    """
    by_path: dict[str, Source] = {}
    skipped: Counter[str] = Counter()
    for text in paths:
        path, skips = Path(text).expanduser(), Counter[str]()
        if _is_folder(path):
            sources = list(_in_folder(path, skips))
        elif _is_file(path):
            sources = [(str(path.resolve()), Source(path, path.name))]
        else:
            matches = sorted(Path(p) for p in glob.glob(str(path), recursive=True))  # noqa: PTH207
            files, fixed = [p for p in matches if _is_file(p)], _fixed_part(path)
            skips.update(_no_file(p) for p in matches if not (_is_file(p) or _is_folder(p)))
            named = [Source(p, p.relative_to(fixed).as_posix()) for p in files]
            sources = [(str(source.path.resolve()), source) for source in named]
        if not sources:
            raise PermanentError(
                f"{text!r} {_why_none(path, skips)}",
                hint="Name a file, a folder or a glob such as 'docs/*.pdf'.",
            )
        skipped += skips
        for real, source in sources:
            by_path.setdefault(real, source)
    _refuse_one_name(by_path.values())
    if skipped:
        click.echo(f"Skipped: {_counts(skipped)}", err=True)
    return list(by_path.values())


def _why_none(path: Path, skips: Counter[str]) -> str:
    if _is_folder(path):
        return f"has only {_counts(skips)}" if skips else "is empty or has only hidden files"
    if os.path.lexists(path):
        return f"is a {_no_file(path)}"
    return "names no file"


def _counts(skips: Counter[str]) -> str:
    return ", ".join(many(count, what) for what, count in sorted(skips.items()))


def _is_file(path: str | Path) -> bool:
    """Whether a path is a file; False if its name is too long or it may not be followed."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises an error for these


def _is_folder(path: str | Path) -> bool:
    """Whether a path is a folder, as `_is_file`."""
    return os.path.isdir(path)  # noqa: PTH112 - as above


def _no_file(path: str | Path) -> str:
    """What a path is that is no file and no folder: a pipe, a socket or a device is special."""
    return "special file" if os.path.exists(path) else "broken link"  # noqa: PTH110


def _in_folder(folder: Path, skips: Counter[str]) -> Iterator[tuple[str, Source]]:
    """Iterate over the visible files below a folder, in the order of their names, by real path."""
    real = folder.resolve()
    visible = _visible(str(folder), skips)
    for name, entry in sorted(visible, key=lambda each: each[0].split("/")):
        path = Path(entry.path)
        yield str(path.resolve()) if entry.is_symlink() else f"{real}/{name}", Source(path, name)


def _visible(
    folder: str, skips: Counter[str], prefix: str = ""
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Iterate over files with their names below the folder; links to folders are not followed.

    Count what is left out in `skips`, except what is hidden.
    """
    try:
        entries = os.scandir(folder)
    except PermissionError:
        skips["unreadable folder"] += 1
        return
    with entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _visible(entry.path, skips, f"{prefix}{entry.name}/")
            elif _is_file(entry.path):
                yield f"{prefix}{entry.name}", entry
            else:
                is_linked = _is_folder(entry.path)
                skips["linked folder" if is_linked else _no_file(entry.path)] += 1


def _fixed_part(pattern: Path) -> Path:
    """The folder of a glob above its first wildcard."""
    return Path(*takewhile(lambda part: not glob.has_magic(part), pattern.parts))


def _refuse_one_name(sources: Iterable[Source]) -> None:
    by_name: dict[str, Source] = {}
    for source in sources:
        other = by_name.setdefault(source.name, source)
        if other is not source:
            raise PermanentError(
                f"{other.path} and {source.path} would both be known as {source.name!r}",
                hint="Name a folder above both, and they are known by their paths below it.",
            )
