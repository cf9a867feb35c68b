"""The protocol of the driver and a system: a line of JSON for each request, event and response.

A system is a process that reads requests from standard input. What its libraries print goes to
standard error. The module needs the standard library alone, since every environment imports it.

{"do": "ingest", "folder": F}               events {"acknowledged": N, "searchable": N}, then
                                            {"seconds": S}
{"do": "change", "folder": F}               {"seconds": S}
{"do": "delete", "names": […]}              {"seconds": S}
{"do": "search", "queries": […], "clients": N}
                                            {"seconds": S, "milliseconds": […], "found": [[name…]…]}
{"do": "stored"}                            {"chunks": {name: count}}
{"do": "settle"}                            {"seconds": S}, when nothing is underway any more
"""

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

BATCH = 32
"""The documents that a chain of components gets at a time."""

TOP = 10
"""The chunks that a search returns."""

Report = Callable[[int, int], None]
"""Takes the numbers of documents that are acknowledged so far, and that are searchable."""


@dataclass(frozen=True)
class Document:
    """A text file, the name of its document, and the spans of its chunks, in characters."""

    path: Path
    name: str
    spans: tuple[tuple[int, int], ...]

    def cut(self, text: str) -> list[str]:
        """Return the chunks of the file's text."""
        return [text[start:end] for start, end in self.spans]


class Chain(Protocol):
    """A system with its data in one folder. A new one over the same folder continues it."""

    def ingest(self, documents: Sequence[Document], report: Report) -> None:
        """Make new documents searchable."""
        ...

    def change(self, documents: Sequence[Document]) -> None:
        """Replace documents of known names, and make the new texts searchable."""
        ...

    def delete(self, names: Sequence[str]) -> None:
        """Remove documents with all their chunks."""
        ...

    def search(self, query: str) -> list[str]:
        """Return the names of the documents of the TOP best chunks, best first. Thread-safe."""
        ...

    def stored(self) -> dict[str, int]:
        """Return the number of searchable chunks of each document."""
        ...

    def settle(self) -> None:
        """Wait until nothing is underway any more. A system in one process never has such work."""
        return

    def pid(self) -> int:
        """Return the process that has all processes of the system below it."""
        return os.getpid()

    def close(self) -> None:
        """End the system."""
        return


def read_documents(folder: Path) -> list[Document]:
    """Return the documents of a folder in the order of `FOLDER.json`, which has their spans."""
    spans = json.loads(folder.with_name(f"{folder.name}.json").read_text())
    return [
        Document(folder / name, name, tuple((start, end) for start, end in cuts))
        for name, cuts in spans.items()
    ]


def batches(documents: Sequence[Document], size: int = BATCH) -> Iterator[Sequence[Document]]:
    """Iterate over batches of documents."""
    for start in range(0, len(documents), size):
        yield documents[start : start + size]


def counted(names: Iterable[str]) -> dict[str, int]:
    """Return the number of each name."""
    return dict(Counter(names))


def distinct(names: Sequence[str]) -> list[str]:
    """Return each name once, in the order of its first place."""
    return list(dict.fromkeys(names))


def serve(make: Callable[[Path, Path], Chain]) -> None:
    """Serve requests until standard input ends; `make` gets the folders of data and of models."""
    output = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # so that no library writes into the protocol

    def send(message: dict[str, Any]) -> None:
        output.write(json.dumps(message) + "\n")

    def report(acknowledged: int, searchable: int) -> None:
        send({"acknowledged": acknowledged, "searchable": searchable})

    chain = make(Path(sys.argv[1]), Path(sys.argv[2]))
    try:
        send({"pid": chain.pid()})
        for line in sys.stdin:
            send({"done": respond(chain, json.loads(line), report)})
    finally:
        chain.close()


def respond(chain: Chain, request: dict[str, Any], report: Report) -> dict[str, Any]:
    """Carry out a request and return the response."""
    do = request["do"]
    if do == "search":
        return _search(chain, request["queries"], request["clients"])
    if do == "stored":
        return {"chunks": chain.stored()}
    started = time.perf_counter()
    if do == "ingest":
        chain.ingest(read_documents(Path(request["folder"])), report)
    elif do == "change":
        chain.change(read_documents(Path(request["folder"])))
    elif do == "delete":
        chain.delete(request["names"])
    elif do == "settle":
        chain.settle()
    else:
        raise ValueError(f"unknown request {do!r}")
    return {"seconds": time.perf_counter() - started}


def _search(chain: Chain, queries: Sequence[str], clients: int) -> dict[str, Any]:
    def timed(query: str) -> tuple[float, list[str]]:
        started = time.perf_counter()
        names = chain.search(query)
        return 1000 * (time.perf_counter() - started), names

    with ThreadPoolExecutor(clients) as pool:
        started = time.perf_counter()
        results = list(pool.map(timed, queries))
        seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "milliseconds": [took for took, _ in results],
        "found": [names for _, names in results],
    }
