"""Haystack behind Hayhooks: one server with a pipeline for indexing and one for queries."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers import protocol
from benchmarks.peers.chains.json_http import JsonHttp
from benchmarks.peers.protocol import Document, Report, batches

WRAPPER = "from benchmarks.peers.chains.hayhooks_wrappers import {name} as PipelineWrapper\n"

DATA, MODELS = "PEERS_DATA", "PEERS_MODELS"
"""The variables of the server that name its folders."""

START_SECONDS = 120.0


class HayhooksChain(protocol.Chain):
    """The server and its client."""

    def __init__(self, data: Path, models: Path) -> None:
        pipelines = data.with_name(f"{data.name}-pipelines")
        for folder, name in (("search", "SearchWrapper"), ("documents", "DocumentsWrapper")):
            (pipelines / folder).mkdir(parents=True, exist_ok=True)
            (pipelines / folder / "pipeline_wrapper.py").write_text(WRAPPER.format(name=name))
        port = str(_free_port())
        options = ("--host", "127.0.0.1", "--port", port, "--pipelines-dir", str(pipelines))
        self._server = subprocess.Popen(
            (
                sys.executable,
                "-P",
                str(Path(sys.executable).with_name("hayhooks")),
                "run",
                *options,
            ),
            env=os.environ | {DATA: str(data), MODELS: str(models)},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
        )
        self._http = JsonHttp(f"http://127.0.0.1:{port}")
        self._wait()

    def pid(self) -> int:
        """Return the server."""
        return self._server.pid

    def close(self) -> None:
        """End the server."""
        self._server.terminate()
        self._server.wait()

    def ingest(self, documents: Sequence[Document], report: Report) -> None:
        """Send each batch to the indexing pipeline."""
        done = 0
        for batch in batches(documents):
            self._documents("ingest", batch)
            done += len(batch)
            report(done, done)

    def change(self, documents: Sequence[Document]) -> None:
        """Send the documents."""
        self._documents("change", documents)

    def delete(self, names: Sequence[str]) -> None:
        """Send the names."""
        self._http.post("/documents/run", {"do": "delete", "names": list(names)})

    def search(self, query: str) -> list[str]:
        """Run the query pipeline."""
        names: list[str] = self._http.post("/search/run", {"query": query})["result"]
        return names

    def stored(self) -> dict[str, int]:
        """Count the store's chunks."""
        counts: dict[str, int] = self._http.post("/documents/run", {"do": "stored"})["result"]
        return counts

    def _documents(self, do: str, documents: Sequence[Document]) -> None:
        folder = str(documents[0].path.parent)
        names = [each.name for each in documents]
        self._http.post("/documents/run", {"do": do, "folder": folder, "names": names})

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.stored()
                return
            except OSError:
                if self._server.poll() is not None or time.monotonic() > deadline:
                    raise
            time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


if __name__ == "__main__":
    protocol.serve(HayhooksChain)
