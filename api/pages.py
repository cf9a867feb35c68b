"""The page at /: collections, documents with their steps, hits and answers, rendered here.

Searching, asking and reading need no JavaScript. static/page.js uploads and deletes through the
API, and asks for `/page/documents` again and again while a document is on its way.
static/answers.js tells what is done while an answer is made, and holds conversations.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from flask import (
    Blueprint,
    Response,
    make_response,
    render_template,
    request,
    stream_with_context,
)
from werkzeug.datastructures import MultiDict

from agent.messages import STAGES, Answer
from api import answering, messages, views
from api.answer_page import Asked, ShownAnswer, asked, asked_again
from api.marking import Passage, body, excerpt, whole
from api.passages import Place, read
from api.search_form import SearchForm
from callslip.errors import CallslipError, CollectionNotFound
from config import get_settings
from retrieval.messages import Hit, SearchResponse
from stores.filters import OPERATORS
from stores.ledger import CollectionRecord
from stores.records import FILTERABLE
from stores.schemas import DEFAULT_COLLECTION
from tasks.process import ledger
from tasks.search import ask

SHOWN = 50
"""Documents on one page of the list."""

LOOKED_BACK_SECONDS, STAYS_SECONDS = 86_400.0, 600.0
"""A batch is shown until nothing came to it for a day, one that is done for ten minutes."""

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'; object-src 'none'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
"""On every answer of the desk: a browser may open any of them."""

blueprint = Blueprint("pages", __name__)


@dataclass(frozen=True)
class ShownHit:
    """A hit with the part of its passage that the list shows."""

    hit: Hit
    heading: Passage
    passage: Passage
    readable: bool
    """Whether there is a text around it."""


@dataclass(frozen=True)
class Shelf:
    """A collection's documents, newest first, as far as one page goes."""

    collection: str
    documents: tuple[messages.Document, ...]
    states: dict[str, int]
    before: float | None
    next_before: float | None
    batches: tuple[messages.Batch, ...]

    @property
    def unfinished(self) -> bool:
        """Whether any document of the collection is still on its way."""
        return self.states.get("queued", 0) > 0

    @property
    def tally(self) -> str:
        """The counts in words, e.g. `12 live, 2 on their way`."""
        words = {"live": "live", "queued": "on the way", "failed": "failed"}
        told = [f"{self.states[s]} {word}" for s, word in words.items() if self.states.get(s)]
        return ", ".join(told) or "No documents yet"

    @property
    def property_names(self) -> list[str]:
        """What a filter may name: fields of every passage, and properties of these documents."""
        return [*FILTERABLE, *sorted({p for d in self.documents for p in d.properties})]


@dataclass(frozen=True)
class Found:
    """What was found for the form; the error is of whichever part failed first."""

    answer: ShownAnswer | None = None
    response: SearchResponse | None = None
    hits: tuple[ShownHit, ...] = ()
    error: CallslipError | None = None


@blueprint.get("/")
def page() -> Response:
    """The whole page; with `q` in its address also the hits, with `ask` an answer above them."""
    form = SearchForm.of(request.args)
    collections = ledger().collections.all()
    try:
        chosen = _chosen(collections, request.args.get("collection"))
    except CollectionNotFound as error:
        return _html("page.html", error.status, collections=collections, form=form, error=error)
    if chosen is None:
        return _html("page.html", collections=collections, form=form)
    found = _found(form, chosen) if "q" in request.args else Found()
    response = _html(
        "page.html",
        found.error.status if found.error else 200,
        collections=collections,
        with_tenants=ledger().collections.get(chosen).schema.tenants,
        tenants=ledger().tenants.all(chosen),
        shelf=_shelf(chosen, request.args),
        **_values(form, chosen, found),
    )
    if form.ask:
        response.headers["Cache-Control"] = "no-store"
    return response


@blueprint.get("/page/documents")
def document_list() -> Response:
    """The list of documents alone."""
    chosen = ledger().collections.get(request.args.get("collection", "")).name
    return _html("documents.html", shelf=_shelf(chosen, request.args))


@blueprint.post("/page/answer")
def answer_live() -> Response:
    """What asking is at, as it goes on, then the answer with the hits, for the page's script."""
    form = SearchForm.of(request.form)
    chosen = ledger().collections.get(request.form.get("collection", "")).name
    form.request(chosen)
    question = asked(form.question(chosen))

    def told(followed: answering.Followed) -> Iterator[str]:
        return stream_with_context(_told(form, chosen, question, followed))

    return answering.stream(question.request, told)


@blueprint.get("/page/passage")
def passage() -> Response:
    """A passage in its document: see `Place.of`, and the query `q`, whose words are marked."""
    record = ledger().documents.get(request.args.get("document", ""))
    reading = read(record, Place.of(request.args), request.args.get("q", ""))
    return _html("passage.html", document=views.document(record), reading=reading)


@blueprint.errorhandler(CallslipError)
def _failed(error: CallslipError) -> Response:
    return _html("problem.html", error.status, error=error)


@blueprint.after_app_request
def _guarded(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if response.status_code in (429, 503):
        response.headers.setdefault("Retry-After", f"{CallslipError.retry_after:.0f}")
    return response


@blueprint.app_template_filter("seconds")
def _seconds(seconds: float) -> str:
    """A duration as a person says it."""
    if seconds < 0.05:
        return "<0.1 s"
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return " ".join(f"{n} {unit}" for n, unit in ((minutes, "min"), (rest, "s")) if n)


@blueprint.app_template_filter("sentence")
def _sentence(detail: str) -> str:
    """An error's detail as a sentence."""
    return f"{detail[:1].upper()}{detail[1:].rstrip('.')}."


@blueprint.app_template_filter("counts")
def _counts(counts: dict[str, int]) -> str:
    """What a step counted, e.g. `1,204 chars, 3 pages`; what it did not find is not told."""
    return ", ".join(
        f"{n:,} {name.removesuffix('s') if n == 1 else name}" for name, n in counts.items() if n
    )


def _html(template: str, status: int = 200, **values: object) -> Response:
    settings = get_settings()
    rendered = render_template(
        template,
        search=settings.search,
        max_upload_mb=settings.api.max_upload_mb,
        operators=OPERATORS,
        **values,
    )
    return make_response(rendered, status)


def _chosen(collections: list[tuple[CollectionRecord, int]], asked: str | None) -> str | None:
    """The collection that was asked for, else the default one or the first; None without any."""
    names = [record.name for record, _ in collections]
    if names and asked and asked not in names:
        raise CollectionNotFound(
            f"collection {asked!r} does not exist", hint="Choose one of the collections above."
        )
    if not names:
        return None
    return asked or (DEFAULT_COLLECTION if DEFAULT_COLLECTION in names else names[0])


def _found(form: SearchForm, collection: str) -> Found:
    """What the form asks for. Without an answer there are still the hits, and the other way."""
    shown, query, error = None, form.query, None
    if form.ask:
        try:
            form.request(collection)  # before it is asked: what is wrong with it is said at once
            longest = get_settings().search.max_query_chars
            question = asked_again(form.question(collection), longest)
            shown = question.shown(answering.ask(question.request))
            query = shown.answer.understood
        except CallslipError as problem:
            error = problem
    return _with_hits(form, collection, query, shown, error)


def _told(
    form: SearchForm, collection: str, question: Asked, followed: answering.Followed
) -> Iterator[str]:
    """Server-sent events: `stage` with a word, at last `outcome` with markup."""
    shown, query, error = None, form.query, None
    try:
        for message in followed:
            if isinstance(message, Answer):
                shown = question.shown(message)
                query = message.understood
            elif stage := STAGES.get(message.node):
                yield _event("stage", stage)
    except CallslipError as problem:
        error = problem
    found = _with_hits(form, collection, query, shown, error)
    markup = render_template(
        "outcome.html", search=get_settings().search, **_values(form, collection, found)
    )
    yield _event("outcome", markup)


def _event(kind: str, data: str) -> str:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"


def _with_hits(
    form: SearchForm,
    collection: str,
    query: str,
    shown: ShownAnswer | None,
    error: CallslipError | None,
) -> Found:
    try:
        response = ask(replace(form, query=query).request(collection))
    except CallslipError as problem:
        return Found(shown, None, (), error or problem)
    return Found(shown, response, _shown(response), error)


def _values(form: SearchForm, collection: str, found: Found) -> dict[str, object]:
    """What outcome.html is made of."""
    return {
        "form": form,
        "chosen": collection,
        "attached": ledger().collections.get(collection).attachment,
        "shown": found.answer,
        "response": found.response,
        "hits": found.hits,
        "error": found.error,
    }


def _shelf(collection: str, args: MultiDict[str, str]) -> Shelf:
    before = args.get("before", type=float)
    states = ledger().documents.states(collection)  # first: what it says is done is shown as done
    found = ledger().documents.find(collection, limit=SHOWN, before=before)
    return Shelf(
        collection=collection,
        documents=tuple(views.document(record) for record in found),
        states=states,
        before=before,
        next_before=found[-1].created_at if len(found) == SHOWN else None,
        batches=_batches(collection),
    )


def _batches(collection: str) -> tuple[messages.Batch, ...]:
    """Those of several documents that are on their way, or have just come to an end."""
    now = time.time()
    ids = ledger().batches.recent(collection, now - LOOKED_BACK_SECONDS)
    found = [views.batch(ledger().batches.report(batch_id)) for batch_id in ids]
    return tuple(
        batch
        for batch in found
        if max(batch.expected or 0, batch.submitted) > 1
        and (batch.left or _ended_at(batch) > now - STAYS_SECONDS)
    )


def _ended_at(batch: messages.Batch) -> float:
    return (batch.started_at or batch.created_at) + (batch.seconds or 0.0)


def _shown(response: SearchResponse) -> tuple[ShownHit, ...]:
    query = response.query
    readable = ledger().versions.readable([hit.document_id for hit in response.hits])
    return tuple(
        ShownHit(
            hit,
            heading=whole(hit.heading or hit.title, query),
            passage=excerpt(body(hit.text, hit.heading), query),
            readable=hit.document_id in readable,
        )
        for hit in response.hits
    )
