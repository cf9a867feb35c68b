"""Sends documents to a stack and waits until they are live."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from callslip.errors import EvaluationError
from callslip.evals.client import JsonClient

POLL_SECONDS = 2.0
"""Rarely, because each request costs the API processor time, which is a figure."""


class Ingestion:
    """Sends documents and waits until all are live."""

    def __init__(self, client: JsonClient, collection: str) -> None:
        """The collection must exist and be empty."""
        self._client, self._sent = client, 0
        self._path = f"/v1/collections/{collection}/documents"

    def run(self, documents: Sequence[str]) -> float:
        """Return the seconds from the first submission until the last is live, from the ledger."""
        with ThreadPoolExecutor(self._client.connections) as pool:
            ids = list(pool.map(self._send, documents))
            self._sent += len(ids)
            self._wait()
            begun, ended = zip(*pool.map(self._times, ids), strict=True)
        return float(max(ended) - min(begun))

    def _send(self, text: str) -> str:
        return str(self._client.post(self._path, {"text": text})["document_id"])

    def _wait(self) -> None:
        states: dict[str, int] = {}
        while states.get("live") != self._sent:
            time.sleep(POLL_SECONDS)
            states = self._client.get(self._path, limit=1)["states"]
            if states.get("failed"):
                raise EvaluationError(f"{states['failed']} documents failed")

    def _times(self, document_id: str) -> tuple[float, float]:
        document = self._client.get(f"/v1/documents/{document_id}")
        return document["submitted_at"], document["finished_at"]
