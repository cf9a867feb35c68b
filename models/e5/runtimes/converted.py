"""Makes the files of a graph in the own format of a runtime, which all processes map."""

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from filelock import FileLock


def converted(
    graph: Path, runtime: str, edition: str, suffix: str, program: str, variant: str = ""
) -> tuple[Path, Path]:
    """Return the files of a graph, topology and weights; they lie beside the graph.

    They are made once for each edition of the runtime and each variant of its files. The Python
    `program` makes them in a separate process, whose end frees its memory: its arguments are the
    graph and the topology to write, with this suffix; it writes the weights beside that, with the
    suffix `.bin`. Files of other editions are removed then.

    Raises OSError or subprocess.CalledProcessError if the files cannot be made.
    """
    common = f"{graph.stem}-{runtime}"
    stem = f"{common}-{edition}{variant}"
    topology, weights = graph.with_name(f"{stem}{suffix}"), graph.with_name(f"{stem}.bin")

    def are_made() -> bool:
        return topology.exists() and weights.exists() and weights.stat().st_size > 0

    if not are_made():
        with FileLock(graph.with_name(f"{common}.lock")):
            if not are_made():
                _make(graph, topology, weights, program, graph.with_name(f"{common}.build"))
                of_edition = f"{common}-{edition}"
                for file in graph.parent.glob(f"{common}-*"):
                    if file.stem != of_edition and not file.stem.startswith(f"{of_edition}-"):
                        with suppress(OSError):
                            file.unlink()
    return topology, weights


def _make(graph: Path, topology: Path, weights: Path, program: str, folder: Path) -> None:
    """Make both files in a folder that only this process uses; put them in place once complete."""
    shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
    folder.mkdir()
    try:
        made = folder / topology.name
        subprocess.run((sys.executable, "-c", program, str(graph), str(made)), check=True)
        for file in (weights, topology):
            with (folder / file.name).open("rb") as written:
                os.fsync(written.fileno())
            (folder / file.name).replace(file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
