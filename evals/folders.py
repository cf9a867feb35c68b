"""The files that a benchmark takes from folders."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from callslip.errors import EvaluationError
from evals.beir import CORPUS, read_corpus

FILES = 200
"""Taken when nothing else is said."""


def gather(folders: Sequence[Path], most: int, scratch: Path) -> list[Path]:
    """Up to so many files, from each folder about as many; of a corpus they are written first."""
    each = [islice(_files(folder, scratch), most) for folder in folders]
    found: list[Path] = []
    while each and len(found) < most:
        for files in list(each):
            path = next(files, None)
            if path is None:
                each.remove(files)
            elif len(found) < most:
                found.append(path)
    if not found:
        raise EvaluationError("there is no file in these folders")
    return found


def _files(folder: Path, scratch: Path) -> Iterator[Path]:
    if not (folder / CORPUS).exists():
        yield from sorted(p for p in folder.rglob("*") if p.is_file() and p.name[0] != ".")
        return
    for number, document in enumerate(read_corpus(folder)):
        path = scratch / f"{folder.name}-{number:05}.txt"
        path.write_text(document.content)
        yield path
