"""Small parts of a step context: steps that are real, with models that cost nothing."""

import hashlib
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from backend_parts import backend_of

from callslip.config.settings import ChunkingSettings, IngestSettings, Settings
from callslip.ingestion.context import StepContext
from callslip.ingestion.extract import extract
from callslip.ingestion.pipeline import run_step
from callslip.ingestion.values import ExtractedText
from callslip.models.embedders.contract import Vectors
from callslip.models.entities import Entity
from callslip.stores.blobs import Blobs, original_name
from callslip.stores.contract import Store
from callslip.stores.ledger import STEPS, Accepted, DocumentRecord, Ledger, Step, Submission
from callslip.stores.levels import PASSAGE

SETTINGS = Settings(
    chunking=ChunkingSettings(target_tokens=32, max_tokens=32, overlap_tokens=0),
    ingest=IngestSettings(retry_base_seconds=60, batch_size=2),
)


class Words:
    """A tokenizer whose tokens are words."""

    def offsets(self, text: str) -> list[int]:
        return [i for i, c in enumerate(text) if c != " " and (i == 0 or text[i - 1] == " ")]


class Lower:
    """An analyzer that knows no language."""

    def analyze(self, text: str) -> str:
        return text.lower()


class Capitals:
    """A recognizer that takes words of capitals for organisations."""

    version = "capitals"

    def find(self, texts: Sequence[str]) -> list[list[Entity]]:
        return [
            [
                Entity(m[0], "organisation", m.start(), m.end())
                for m in re.finditer(r"[A-Z]{2,}", text)
            ]
            for text in texts
        ]


class Reader:
    """Extraction in this process."""

    def extract(self, data: bytes, filename: str, fields: Mapping[str, str]) -> ExtractedText:
        return extract(data, filename, SETTINGS.extract.model_copy(update=dict(fields)))


class Tiny:
    """An embedder of four dimensions that remembers what it was given."""

    model, dimension, max_tokens, lexical_only = "tiny", 4, 1000, False

    def __init__(self) -> None:
        self.given: list[str] = []

    def passages(self, texts: Sequence[str]) -> Vectors:
        self.given += texts
        digests = [hashlib.sha256(text.encode()).digest()[:4] for text in texts]
        rows = np.array([list(digest) for digest in digests], np.float32) + 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def make_context(ledger: Ledger, blobs: Blobs, store: Store) -> StepContext:
    """A step context of these parts with one store."""
    parts: dict[str, Any] = {
        "embedder": Tiny(),
        "tokenizer": Words(),
        "analyzer": Lower(),
        "extractor": Reader(),
        "recognizer": Capitals(),
    }
    return StepContext(backend=backend_of(ledger, store, SETTINGS, blobs), **parts)


def with_backend(step_context: StepContext, **changed: Any) -> StepContext:
    """The same, with other parts of its backend."""
    return replace(step_context, backend=replace(step_context.backend, **changed))


def paragraphs(*words: str) -> str:
    """A text in which each of these words is a chunk."""
    return "\n\n".join(" ".join([f"{word}{n}" for n in range(30)]) for word in words)


def submit(
    step_context: StepContext,
    text: str,
    name: str = "a.txt",
    *,
    collection: str = "papers",
    tenant: str = "",
    title: str = "",
    **properties: Any,
) -> Accepted:
    """Do what the server does with a submission."""
    content = text.encode()
    digest = hashlib.sha256(content).hexdigest()
    known = step_context.ledger.documents.id_of(collection, name, tenant=tenant)
    new_id = known or uuid.uuid4().hex
    step_context.blobs.write(new_id, original_name(digest), content)
    given = Submission(name, name, title, digest, len(content), properties)
    return step_context.ledger.documents.submit(collection, given, new_id, tenant=tenant)


def doing(step_context: StepContext) -> Callable[[str, int, Step], None]:
    """Does the steps of a version from one on, here and now, as the ingest workers do."""

    def do(document_id: str, version: int, first: Step = "extract") -> None:
        for step in STEPS[STEPS.index(first) :]:
            if run_step(step_context, step, document_id, version) == "stop":
                return

    return do


def look(step_context: StepContext, item: Accepted) -> DocumentRecord:
    """The document as it stands."""
    return step_context.ledger.documents.get(item.document_id)


def held(step_context: StepContext, item: Accepted) -> set[str]:
    """Ids of the chunks that the store holds of a document."""
    return step_context.store_of("memory").chunk_ids("papers", item.document_id)["vector"]


def seen(step_context: StepContext, item: Accepted) -> list[str]:
    """First words of the passages that a search may show, in order of the text."""
    visible = step_context.ledger.chunks.visible(sorted(held(step_context, item)))
    chunks = step_context.store_of("memory").get_chunks("papers", list(visible))
    passages = [chunk for chunk in chunks if chunk.level == PASSAGE]
    return [c.body.split()[0] for c in sorted(passages, key=lambda c: c.ordinal)]
