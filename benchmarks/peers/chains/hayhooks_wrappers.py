"""The pipelines that Hayhooks serves, in its own process."""

import os
import threading
from functools import cache
from pathlib import Path

from hayhooks import BasePipelineWrapper

from benchmarks.peers.chains.hayhooks_chain import DATA, MODELS
from benchmarks.peers.chains.haystack_chain import HaystackChain
from benchmarks.peers.protocol import read_documents


class SearchWrapper(BasePipelineWrapper):
    """The query pipeline."""

    def setup(self) -> None:
        """Make the pipelines."""
        self.pipeline = _chain().query_pipeline

    def run_api(self, query: str) -> list[str]:
        """Return the names of the documents of the best chunks."""
        return _chain().search(query)


class DocumentsWrapper(BasePipelineWrapper):
    """The indexing pipeline, deletion and a count."""

    def setup(self) -> None:
        """Make the pipelines."""
        self.pipeline = _chain().indexing_pipeline

    def run_api(self, do: str, folder: str = "", names: list[str] = []) -> dict[str, int]:  # noqa: B006
        """Carry out a request; the store's counts if it is for them."""
        if do == "stored":
            return _chain().stored()
        if do == "delete":
            _chain().delete(names)
            return {}
        wanted = set(names)
        documents = [each for each in read_documents(Path(folder)) if each.name in wanted]
        if do == "change":
            _chain().change(documents)
        else:
            _chain().ingest(documents, lambda *_: None)
        return {}


_making = threading.Lock()
"""Hayhooks sets up several pipelines at once."""


def _chain() -> HaystackChain:
    with _making:
        return _made()


@cache
def _made() -> HaystackChain:
    return HaystackChain(Path(os.environ[DATA]), Path(os.environ[MODELS]))
