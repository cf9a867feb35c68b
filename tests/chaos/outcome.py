"""What lies in the ledger and in the store, and what should."""

import time
import uuid

import httpx
from stack import Stack

from config.settings import ChunkingSettings
from ingestion.chunk import chunk
from ingestion.parts import ExtractedText
from ingestion.sectionize import sectionize
from models.tokens import Tokenizer
from stores.ledger import STEPS, DocumentRecord, Ledger, Step, StepRecord
from stores.registry import make_store

COLLECTION = "chaos"
LONGEST_WAIT = 180.0


class Outcome:
    """Submits documents and looks at what became of them, past the desk."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        settings = stack.settings
        self.ledger = Ledger(settings.ledger_url)
        self.store = make_store(settings, "chroma")
        self.tokenizer = Tokenizer(settings.models_dir)
        self.http = httpx.Client(base_url=stack.url, timeout=60, trust_env=False)
        self.http.post("/v1/collections", json={"name": COLLECTION}).raise_for_status()

    def close(self) -> None:
        self.http.close()
        self.ledger.close()

    def submit(self, text: str, name: str | None = None) -> str:
        """Send a text; the document's id."""
        answer = self.http.post(
            f"/v1/collections/{COLLECTION}/documents",
            json={"text": text, "name": name or f"{uuid.uuid4().hex}.txt"},
        )
        assert answer.status_code == 202, answer.text
        document_id: str = answer.json()["document_id"]
        return document_id

    def step(self, document_id: str, step: Step) -> StepRecord:
        """One step as the ledger has it."""
        return self.ledger.documents.get(document_id).steps[STEPS.index(step)]

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
        held = self.store.chunk_ids(COLLECTION, document_id)
        assert self.ledger.chunks.live_ids(document_id) == expected
        assert held == {"vector": expected, "keyword": expected}
        upsert = self.step(document_id, "upsert")
        assert upsert.counts["chunks"] == len(expected)

    def chunk_ids(self, document_id: str, text: str) -> set[str]:
        """The ids of the chunks that this text has."""
        extracted = ExtractedText(text=text, media_type="text/plain")
        chunks = chunk(text, sectionize(extracted), self.tokenizer, ChunkingSettings(), document_id)
        return {c.chunk_id for c in chunks}


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
