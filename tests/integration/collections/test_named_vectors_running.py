"""Two embedders through a whole stack: the local model, and one of a server at the wire."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from api_calls import Api
from loopback import LoopbackServer
from stack import MakeStack
from terminal import invoke

from callslip.client import Client

MEANINGS = ("garden lawn", "cellar vault", "roof attic")
TEXTS = {
    "cat": "The cat sleeps in the garden.",
    "dog": "The dog barks in the cellar.",
    "finch": "The finch sings on the roof.",
}


class EmbeddingServer(LoopbackServer):
    """Speaks OpenAI's embeddings protocol; a component of a vector is a meaning that it knows."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.texts: list[str] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: EmbeddingServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.texts += body["input"]
        data = [
            {"index": n, "embedding": _vector(text), "object": "embedding"}
            for n, text in enumerate(body["input"])
        ]
        content = json.dumps({"object": "list", "model": body["model"], "data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _vector(text: str) -> list[float]:
    known = [float(any(w in text.lower() for w in words.split())) for words in MEANINGS]
    return [*known, 0.2]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running


@pytest.mark.long
def test_two_embedders_fill_a_collection_that_is_searched_by_either(
    make_stack: MakeStack, server: EmbeddingServer
) -> None:
    variables = {
        "CALLSLIP_EMBEDDERS__BY_PLACE__BASE_URL": server.url,
        "CALLSLIP_EMBEDDERS__BY_PLACE__MODEL": "places",
        "CALLSLIP_EMBEDDERS__BY_PLACE__DIMENSION": "4",  # else each process asks for it once
    }
    stack = make_stack(variables).start()
    with Api(stack) as api, Client(stack.url) as client:
        assert client.search(api.collection, "vault").hits == []
        assert server.texts == []
        name = f"{api.collection}-two"
        made = client.create_collection(name, vectors={"place": "by_place"})
        assert made.vectors["place"].embedder == "openai/places"
        assert made.vectors["place"].dimension == 4
        api.collection = name
        api.all_live(
            {"text": text, "name": each, "properties": {"about": each}}
            for each, text in TEXTS.items()
        )
        assert set(TEXTS.values()) <= set(server.texts)
        before = len(server.texts)

        def best(query: str, **more: Any) -> str:
            (hit,) = client.search(name, query, top=1, **more).hits
            return str(hit.properties["about"])

        assert best("the sleep of a cat", alpha=1) == "cat"
        assert len(server.texts) == before
        for alpha in (1, 0.5, None):
            assert best("vault", vector_name="place", alpha=alpha) == "dog"
        assert best("attic", vector_name="place") == "finch"
        assert server.texts[before:] == ["vault", "attic"]
        both = client.search(name, "lawn", vector_name="place", top=1, include_vector=True).hits[0]
        assert both.vectors is not None
        assert {n: len(v) for n, v in both.vectors.items()} == {"default": 384, "place": 4}
        answered = client.answer(name, "What does the dog do?")
        assert answered.trace_id
        unknown = api.search("vault", vector_name="where")
        assert unknown.status_code == 404
        assert unknown.json()["detail"].endswith("named ones: place.")

        def callslip(*arguments: str, code: int = 0) -> str:
            ran = invoke(stack, *arguments)
            assert ran.exit_code in (0, code), ran.output
            return ran.stdout

        shown = callslip("search", "vault", "-c", name, "--vector", "place", "-n", "1")
        assert "The dog barks" in shown
        assert f"{name}: 3 live documents, chroma" in (status := callslip("status", "-c", name))
        assert "place: openai/places" in status
        assert "embedders.by_place" in callslip("doctor", code=1)
        callslip("audit", name)
