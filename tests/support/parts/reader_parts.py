"""An installation in one process, whose documents have readers, for tests.

with installation(tmp_path) as it:
    it.put("secret.txt", "The merger is in May.", readers="group:board")
    assert it.as_reader("user:bob").search("merger") == []
"""

import hashlib
import io
import math
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agent_parts import Bm25Store
from context_parts import LoneBroker
from flask import request
from flask.testing import FlaskClient
from pipeline_parts import SETTINGS, Capitals, Tiny, Words
from pipeline_parts import Reader as Extractor
from werkzeug.test import TestResponse

from callslip.api.app import create_app
from callslip.api.http import csrf
from callslip.api.http.context import set_reader
from callslip.config.settings import Settings
from callslip.ingestion.context import StepContext
from callslip.ingestion.pipeline import run_step
from callslip.models.text.analyzer import Analyzer
from callslip.readers import Reader
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.tracing.trace import Trace
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import STEPS, Ledger
from callslip.stores.records import CollectionSchema, Vector, VectorSpec
from callslip.tasks import answer as answers
from callslip.tasks import ingest, maintenance
from callslip.tasks.composition import Context

COLLECTION = "papers"

HEADER = "X-Reader"
"""Names of a test's reader, with commas; without it, the caller may read everything."""


made: dict[Blobs, "Installation"] = {}
"""Every installation by its blobs, which a limited context shares."""


class Embedder(Tiny):
    """Texts that share words are near."""

    dimension = 16

    def passages(self, texts: Any) -> Any:
        return np.stack([self.query(text) for text in texts])

    def query(self, text: str) -> Vector:
        vector = np.full(self.dimension, 1e-3, np.float32)
        for word in text.lower().replace(".", " ").replace("?", " ").split():
            vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % self.dimension] += 1
        return vector / np.float32(np.linalg.norm(vector))


class Recognizer(Capitals):
    """For documents and for questions."""

    codes = ("en",)


TOKEN = "t" * 22
"""The token of the page in every request."""


class At:
    """The API as a reader sees it; without names, as a caller who may read everything."""

    def __init__(self, client: FlaskClient, names: str | None) -> None:
        self._client, self._names = client, names

    def call(self, method: str, url: str, **more: Any) -> TestResponse:
        """Send a request."""
        headers = dict(more.pop("headers", {}))
        if self._names is not None:
            headers[HEADER] = self._names
        return self._client.open(url, method=method, headers=headers, **more)

    def search(self, query: str, **more: Any) -> list[str]:
        """The file names of the hits."""
        body = {"collection": COLLECTION, "query": query, "top": 20} | more
        found = self.call("POST", "/v1/search", json=body)
        assert found.status_code == 200, found.text
        return sorted({hit["filename"] for hit in found.json["hits"]})


class Installation:
    """The API and the work of its workers, which is done as soon as it is queued."""

    def __init__(self, context: Context, steps: StepContext, client: FlaskClient) -> None:
        self.context, self.steps, self.client = context, steps, client
        self.ledger = context.ledger
        self.anyone = At(client, None)

    def as_reader(self, names: str) -> At:
        """The API as a reader with these names sees it."""
        return At(self.client, names)

    def put(self, name: str, text: str | bytes, readers: str | None = None, **form: Any) -> str:
        """Submit a document as a caller who may read everything; return its id."""
        content = text.encode() if isinstance(text, str) else text
        fields = form | {"file": (io.BytesIO(content), name)}
        if readers is not None:
            fields["readers"] = readers
        sent = self.anyone.call("POST", f"/v1/collections/{COLLECTION}/documents", data=fields)
        assert sent.status_code in (200, 202), sent.text
        return str(sent.json["document_id"])

    def chunks(self, name: str) -> list[str]:
        """The ids of the chunks that the store has of a document."""
        document_id = self.ledger.documents.id_of(COLLECTION, name)
        assert document_id is not None
        store = self.context.store_of("")
        return sorted(store.chunk_ids(COLLECTION, document_id)["vector"])

    def work(self) -> None:
        """Do what is queued."""
        while items := self.ledger.fair_queue.take_all(math.inf):
            for item in items:
                for step in STEPS[STEPS.index(item.step) :]:
                    if run_step(self.steps, step, item.document_id, item.version) == "stop":
                        break


@contextmanager
def installation(
    folder: Path, monkeypatch: pytest.MonkeyPatch, store: Store | None = None
) -> Iterator[Installation]:
    """An installation with the empty collection `papers`."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = Settings(data_dir=folder, chunking=SETTINGS.chunking, ingest=SETTINGS.ingest)
    used = store or Bm25Store()
    ledger = Ledger(f"sqlite:///{folder / 'ledger.db'}")
    ledger.create()
    parts: dict[str, Any] = {
        "ledger": ledger,
        "blobs": Blobs(f"memory://{uuid.uuid4().hex}"),
        "broker": LoneBroker(),
        "embedder": Embedder(),
        "analyzer": Analyzer(),
        "tokenizer": Words(),
    }
    context = Context(
        settings, local=True, store_of=lambda _: used, store_kinds=(used.kind,), **parts
    )
    embedder: Any = parts["embedder"]
    resources = Resources(context.backend, embedder, parts["analyzer"], _recognizer())
    steps_parts: dict[str, Any] = {
        "embedder": embedder,
        "tokenizer": Words(),
        "analyzer": parts["analyzer"],
        "extractor": Extractor(),
        "recognizer": Recognizer(),
    }
    steps = StepContext(backend=context.backend, **steps_parts)
    context.provided = {**parts, "resources": resources, "steps": steps}
    schema = CollectionSchema(COLLECTION, VectorSpec(16, normalized=True))
    used.ensure_schema(schema)
    ledger.collections.create(schema, store=used.kind, embedder="tiny", analyzer="1")
    app = create_app(context)
    app.before_request(_read_reader)
    client = app.test_client()
    client.set_cookie(csrf.COOKIE, TOKEN)
    client.environ_base["HTTP_X_CSRF_TOKEN"] = TOKEN
    it = Installation(context, steps, client)
    monkeypatch.setattr(ingest, "send_next", lambda limited, _id: made[limited.blobs].work())
    made[context.blobs] = it
    monkeypatch.setattr(maintenance, "send_removal", lambda _context, _id: None)
    monkeypatch.setattr(
        answers, "ask", lambda limited, body, *, again: limited.agent.answer(body, again=again)
    )
    try:
        yield it
    finally:
        ledger.close()


def record(it: Installation, traces: list[Trace]) -> None:
    """Record searches, as the recorder's thread does."""
    it.context.learning.record(traces)


def _recognizer() -> Any:
    from callslip.models.entities import Recognizer as Entities

    return Entities()


def _read_reader() -> None:
    names = request.headers.get(HEADER)
    if names is not None:
        set_reader(Reader(names, frozenset(filter(None, names.split(",")))))
