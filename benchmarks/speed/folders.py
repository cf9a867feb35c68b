"""Selection of a benchmark's files from folders."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from callslip.errors import EvaluationError
from callslip.evals.beir import CORPUS, read_corpus

FILES = 200
"""The default number of files."""


def gather(folders: Sequence[Path], most: int, scratch: Path) -> list[Path]:
    """Return at most `most` files, about as many from each folder.

    Documents of a judged set's corpus are first written to `scratch` as text files.
    """
    each = [islice(_files(folder, scratch), most) for folder in folders]
    files: list[Path] = []
    while each and len(files) < most:
        for remaining in list(each):
            path = next(remaining, None)
            if path is None:
                each.remove(remaining)
            elif len(files) < most:
                files.append(path)
    if not files:
        raise EvaluationError("there is no file in these folders")
    return files


def _files(folder: Path, scratch: Path) -> Iterator[Path]:
    if not (folder / CORPUS).exists():
        yield from sorted(p for p in folder.rglob("*") if p.is_file() and p.name[0] != ".")
        return
    for number, document in enumerate(read_corpus(folder)):
        path = scratch / f"{folder.name}-{number:05}.txt"
        path.write_text(document.content)
        yield path
