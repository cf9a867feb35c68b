"""Callslip as it is run: `callslip up`, `callslip ingest FOLDER`, searches over HTTP."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers import protocol
from benchmarks.peers.chains.json_http import JsonHttp
from benchmarks.peers.protocol import TOP, Document, Report, distinct
from benchmarks.private_stack import private_stack
from callslip.client import Client
from callslip.errors import CollectionNotFound

COLLECTION = "peers"

CLIENTS = 4
"""The requests for deletion at one time."""

WITHOUT_CACHES = {"CALLSLIP_SEARCH__QUERY_CACHE": "0", "CALLSLIP_SEARCH__RESULT_CACHE": "0"}
"""Queries come again: in the warm-up, and when there are more searches than queries."""

POLL_SECONDS, COUNT_SECONDS = 0.2, 1.0


class CallslipChain(protocol.Chain):
    """The stack and its clients."""

    def __init__(self, data: Path, models: Path) -> None:
        data.mkdir(parents=True, exist_ok=True)
        if not (data / "models").exists():
            (data / "models").symlink_to(models)  # else each folder would get a copy
        self._stack = private_stack(data, WITHOUT_CACHES)
        run = self._stack.__enter__().run
        self._url, self._pid = run.api_url, run.supervisor.pid
        self._client, self._http = Client(self._url), JsonHttp(self._url)

    def pid(self) -> int:
        """Return the supervisor."""
        return self._pid

    def close(self) -> None:
        """End the stack."""
        self._client.close()
        self._stack.__exit__(None, None, None)

    def ingest(self, documents: Sequence[Document], report: Report) -> None:
        """Run `callslip ingest`, and look every now and then how many documents are accepted."""
        folder = documents[0].path.parent
        callslip = str(Path(sys.executable).with_name("callslip"))
        options = ("--json", "--allow-duplicate", "-c", COLLECTION, "--url", self._url)
        with self._counted(report):
            subprocess.run(
                (callslip, "ingest", str(folder), *options), check=True, stdout=subprocess.DEVNULL
            )

    def change(self, documents: Sequence[Document]) -> None:
        """Run `callslip ingest` again."""
        self.ingest(documents, lambda *_: None)

    def delete(self, names: Sequence[str]) -> None:
        """Delete documents and wait until nothing of them is in the store."""
        ids = {each.name: each.document_id for each in self._client.documents(COLLECTION)}

        def remove(name: str) -> str:
            return self._client.delete_document(ids[name]).task_id

        with ThreadPoolExecutor(CLIENTS) as pool:
            tasks = list(pool.map(remove, names))
        for task in tasks:
            while self._client.get_task(task).state != "done":
                time.sleep(POLL_SECONDS)

    def search(self, query: str) -> list[str]:
        """Search over HTTP."""
        body = {"collection": COLLECTION, "query": query, "top": TOP}
        hits = self._http.post("/v1/search", body)["hits"]
        return distinct([hit["filename"] for hit in hits])

    def stored(self) -> dict[str, int]:
        """Count the chunks of live documents."""
        live = [each for each in self._client.documents(COLLECTION) if each.state == "live"]
        return {each.name: sum(1 for _ in self._client.chunks(each.document_id)) for each in live}

    def settle(self) -> None:
        """Wait until every accepted document is live or failed."""
        while self._states().get("queued"):
            time.sleep(POLL_SECONDS)

    def _states(self) -> dict[str, int]:
        try:
            return self._client.list_documents(COLLECTION, limit=1).states
        except CollectionNotFound:
            return {}

    @contextmanager
    def _counted(self, report: Report) -> Iterator[None]:
        before, ended = sum(self._states().values()), threading.Event()

        def count() -> None:
            while not ended.wait(COUNT_SECONDS):
                states = self._states()
                report(sum(states.values()) - before, states.get("live", 0) - before)

        thread = threading.Thread(target=count)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


if __name__ == "__main__":
    protocol.serve(CallslipChain)
