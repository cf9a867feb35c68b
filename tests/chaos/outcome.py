"""What lies in the ledger and in the store, and what should."""

import time
import uuid
from collections.abc import Mapping, Sequence

import httpx
import numpy as np
import redis
from stack import Stack

from callslip.config.settings import ChunkingSettings
from callslip.ingestion.chunks.chunk import chunk
from callslip.ingestion.sections.hierarchy import with_parents
from callslip.ingestion.sections.sectionize import sectionize
from callslip.ingestion.values import Chunk, ExtractedText
from callslip.models.e5.tokens import Tokenizer
from callslip.stores.ledger import STEPS, DocumentRecord, Ledger, Step, StepRecord
from callslip.stores.records import ChunkRecord
from callslip.stores.records import DocumentRecord as DocumentRow
from callslip.stores.registry import make_store

COLLECTION = "chaos"
LONGEST_WAIT = 180.0


class Outcome:
    """Submits documents and looks at what became of them, past the API."""

    def __init__(
        self,
        stack: Stack,
        headers: Mapping[str, str] | None = None,
        collection: str = COLLECTION,
    ) -> None:
        self.stack, self.collection = stack, collection
        settings = stack.settings
        self.ledger = Ledger(settings.ledger_url)
        self.store = make_store(settings, "chroma")
        self.tokenizer = Tokenizer(settings.models_dir)
        self.broker = redis.Redis.from_url(stack.broker_url)
        self.http = httpx.Client(base_url=stack.url, headers=headers, timeout=60, trust_env=False)
        self.http.post("/v1/collections", json={"name": collection}).raise_for_status()

    def close(self) -> None:
        self.http.close()
        self.broker.close()
        self.store.close()
        self.ledger.close()

    def submit(self, text: str, name: str | None = None) -> str:
        """Send a text; the document's id."""
        answer = self.http.post(
            f"/v1/collections/{self.collection}/documents",
            json={"text": text, "name": name or f"{uuid.uuid4().hex}.txt"},
        )
        assert answer.status_code == 202, answer.text
        document_id: str = answer.json()["document_id"]
        return document_id

    def steps(self, document_id: str) -> Sequence[StepRecord]:
        """All steps as the ledger has them, in order."""
        return self.ledger.documents.get(document_id).steps

    def step(self, document_id: str, step: Step) -> StepRecord:
        """One step as the ledger has it."""
        return self.steps(document_id)[STEPS.index(step)]

    def wait(self, document_id: str, *states: str) -> DocumentRecord:
        """Wait until the document is in one of the states; fails with the logs."""
        until = time.monotonic() + LONGEST_WAIT
        while time.monotonic() < until:
            found = self.ledger.documents.get(document_id)
            if found.state in states:
                return found
            time.sleep(0.1)
        raise AssertionError(f"still {found.state}: {found.steps}\n{self.stack.tails()}")

    def assert_whole(self, document_id: str, text: str) -> None:
        """Exactly the chunks of this text, once each, in the ledger and in both halves."""
        expected = self.chunk_ids(document_id, text)
        held = self.store.chunk_ids(self.collection, document_id)
        assert self.ledger.chunks.live_ids(document_id) == expected
        assert held == {"vector": expected, "keyword": expected}
        upsert = self.step(document_id, "upsert")
        passages = upsert.counts["chunks"]
        assert (passages, passages + upsert.counts["parents"]) == (
            len(self.chunks(document_id, text)),
            len(expected),
        )

    def chunks(self, document_id: str, text: str) -> list[Chunk]:
        """The passages that this text has."""
        extracted = ExtractedText(text=text, media_type="text/plain")
        return chunk(text, sectionize(extracted), self.tokenizer, ChunkingSettings(), document_id)

    def chunk_ids(self, document_id: str, text: str) -> set[str]:
        """The ids of the passages that this text has, of their sections and of the document."""
        chunks = self.chunks(document_id, text)
        vector = np.ones(1, np.float32)
        passages = [
            ChunkRecord(
                c.chunk_id, document_id, "", "", vector, section=c.section, start=c.start, end=c.end
            )
            for c in chunks
        ]
        document = DocumentRow(document_id, "", "")
        return {c.chunk_id for c in with_parents(document, text, chunks, passages)}


def essay(paragraphs: int) -> str:
    """A text of its own at every call, about 60 tokens a paragraph, with headings."""
    mark = uuid.uuid4().hex[:8]
    parts = []
    for number in range(paragraphs):
        if number % 10 == 0:
            parts.append(f"{number // 10 + 1}. Rules about matter {mark}")
        parts.append(
            f"Paragraph {number} of {mark} says that whoever files case {number * 7919 % 10007}"
            f" before the office closes on day {number % 28 + 1} receives a receipt with the number"
            f" {mark}-{number}, and that the office answers within {number % 9 + 2} weeks."
        )
    return "\n\n".join(parts) + "\n"
