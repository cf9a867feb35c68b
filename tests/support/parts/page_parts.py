"""The page over a real ledger, with what it is asked and what it shows taken apart, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from ledger_moves import publish

from callslip.api.http import csrf
from callslip.api.page import pages
from callslip.ingestion.artifacts import EXTRACTED
from callslip.ingestion.values import ExtractedText
from callslip.retrieval.messages import Hit, Leg, Legs, SearchRequest, SearchResponse, Span
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Accepted, Ledger
from callslip.stores.records import CollectionSchema, VectorSpec

HOSTILE = """<img src=x onerror="alert(1)">'"&amp;<script>alert(2)</script>"""


@contextmanager
def shelved(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger that the page reads, with nothing in it."""
    made = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    made.create()
    yield made
    made.close()


def of_a_page(client: FlaskClient) -> FlaskClient:
    """The client sends what a browser sends from a page of the server: its site and the token."""
    token = "t" * 22
    client.set_cookie(csrf.COOKIE, token)
    client.environ_base |= {"HTTP_SEC_FETCH_SITE": "same-origin", "HTTP_X_CSRF_TOKEN": token}
    return client


def make_collection(ledger: Ledger) -> Ledger:
    """With the collection that `ledger_moves` submits to."""
    ledger.collections.create(
        CollectionSchema("papers", VectorSpec(4)), store="memory", embedder="tiny", analyzer="1"
    )
    return ledger


def answers(monkeypatch: pytest.MonkeyPatch) -> list[SearchRequest]:
    """The searches that are asked from now on; each is answered with one hostile hit."""
    requests: list[SearchRequest] = []

    def ask(_: object, request: SearchRequest) -> SearchResponse:
        requests.append(request)
        return answer(request.query, hit(f"Leave lasts long. {HOSTILE}"))

    monkeypatch.setattr(pages, "ask", ask)
    return requests


def hit(text: str) -> Hit:
    return Hit(
        rank=1,
        score=0.75,
        chunk_id="c1",
        document_id="d1",
        title=f"Title {HOSTILE}",
        filename=f"File {HOSTILE}",
        section="leave",
        heading=f"Heading {HOSTILE}",
        text=text,
        span=Span(start=3, end=3 + len(text)),
        lang="en",
        properties={HOSTILE: [HOSTILE, "b"], "year": 2026},
        legs=Legs(vector=None, keyword=Leg(rank=4, score=7.5)),
        level=1,
        parent_id=None,
        parent_of=None,
        vector=None,
    )


def answer(query: str, *hits: Hit, **more: object) -> SearchResponse:
    known = {"partial": False, "left_out": {}} | more
    return SearchResponse.model_validate(
        {
            "collection": "papers",
            "query": query,
            "hits": [h.model_dump() for h in hits],
            "alpha": 0.4,
            "fusion": "weighted",
            "as_of": {"at": "2020-03-31T00:00:00Z", "source": "understood", "words": "in March"},
            "trace_id": "t",
            "cut": False,
            "candidates": 12,
            "timings": {"legs": 3.0, "embed": 9.0},
        }
        | known
    )


class Tags(HTMLParser):
    """Every tag and attribute, as a browser would read them, and the text between."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def addresses(self) -> list[str]:
        names = ("href", "src", "action", "data-url", "data-delete", "formaction", "poster")
        return [value for _, a in self.tags for n in names if (value := a.get(n)) is not None]


def assert_harmless(html: str) -> Tags:
    tags = Tags(html)
    assert all(tag != "img" for tag, _ in tags.tags)
    scripts = {a["src"] for tag, a in tags.tags if tag == "script"}
    assert scripts <= {"/static/page.js", "/static/answers.js"}
    assert not [a for _, attrs in tags.tags for a in attrs if a.startswith("on") or a == "style"]
    return tags


def blobs_in(tmp_path: Path) -> Blobs:
    """Where the texts of documents lie."""
    return Blobs(str(tmp_path / "blobs"))


def extracted(ledger: Ledger, text: str, tmp_path: Path) -> Accepted:
    """A live document whose text lies where the extract step puts it."""
    item = publish(ledger, text, ["c1"])
    parts = ExtractedText(text=text, media_type="text/plain")
    blobs_in(tmp_path).write(item.document_id, "extract-artifact", EXTRACTED.dump(parts))
    return item
