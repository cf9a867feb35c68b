"""The page at /: collections, documents with their steps, a search with its hits, rendered here.

Searching and reading need no JavaScript. static/page.js uploads and deletes through the API, and
asks for `/page/documents` again and again while a document is on its way.
"""

import re
import time
from dataclasses import dataclass

from flask import Blueprint, Response, make_response, render_template, request
from werkzeug.datastructures import MultiDict

from api import documents, messages, views
from api.marking import Passage, body, excerpt, tighten, whole
from api.search_form import SearchForm
from callslip.errors import CallslipError, CollectionNotFound, InvalidRequest
from config import get_settings
from models.language import lang
from retrieval.messages import Hit, SearchResponse
from retrieval.sentences import reflow
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

SURROUNDINGS = 500
"""Characters before and after a passage in context."""

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'; object-src 'none'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
"""On every answer of the desk: a browser may open any of them."""

_CUT_AT_START, _CUT_AT_END = re.compile(r"^\S{1,30}\s"), re.compile(r"\s\S{1,30}$")
"""A word that the window of characters cut in two."""

blueprint = Blueprint("pages", __name__)


@dataclass(frozen=True)
class ShownHit:
    """A hit with the part of its passage that the list shows."""

    hit: Hit
    heading: Passage
    passage: Passage


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


@blueprint.get("/")
def page() -> Response:
    """The whole page; with `q` in its address also the hits."""
    form = SearchForm.of(request.args)
    collections = ledger().collections.all()
    try:
        chosen = _chosen(collections, request.args.get("collection"))
    except CollectionNotFound as error:
        return _html("page.html", error.status, collections=collections, form=form, error=error)
    if chosen is None:
        return _html("page.html", collections=collections, form=form)
    answered, problem = _search(form, chosen) if "q" in request.args else (None, None)
    return _html(
        "page.html",
        problem.status if problem else 200,
        collections=collections,
        chosen=chosen,
        with_tenants=ledger().collections.get(chosen).schema.tenants,
        tenants=ledger().tenants.all(chosen),
        shelf=_shelf(chosen, request.args),
        form=form,
        response=answered,
        hits=_shown(answered) if answered else (),
        error=problem,
    )


@blueprint.get("/page/documents")
def document_list() -> Response:
    """The list of documents alone."""
    chosen = ledger().collections.get(request.args.get("collection", "")).name
    return _html("documents.html", shelf=_shelf(chosen, request.args))


@blueprint.get("/page/passage")
def passage() -> Response:
    """A passage in its document: `document`, `start` and `end` in characters, and the query `q`."""
    record = ledger().documents.get(request.args.get("document", ""))
    start, end = _number(request.args, "start"), _number(request.args, "end")
    first = max(0, start - SURROUNDINGS)
    answered = documents.get_text(
        documents.DocumentPath(document_id=record.document_id),
        documents.TextQuery(start=first, end=end + SURROUNDINGS),
    )
    around = messages.TextSlice.model_validate_json(answered.get_data())
    text = reflow(around.text)
    before, after = text[: start - first], text[end - first :]
    if around.start:
        before = _CUT_AT_START.sub("", before)
    if around.end < around.length:
        after = _CUT_AT_END.sub("", after)
    return _html(
        "passage.html",
        document=views.document(record),
        around=around,
        lang=lang(text),
        before=tighten(before),
        found=whole(tighten(text[start - first : end - first]), request.args.get("q", "")),
        after=tighten(after),
    )


@blueprint.errorhandler(CallslipError)
def _failed(error: CallslipError) -> Response:
    return _html("problem.html", error.status, error=error)


@blueprint.after_app_request
def _guarded(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
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


def _search(
    form: SearchForm, collection: str
) -> tuple[SearchResponse, None] | tuple[None, CallslipError]:
    try:
        return ask(form.request(collection)), None
    except CallslipError as error:
        return None, error


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
    return tuple(
        ShownHit(
            hit,
            heading=whole(hit.heading or hit.title, query),
            passage=excerpt(body(hit.text, hit.heading), query),
        )
        for hit in response.hits
    )


def _number(args: MultiDict[str, str], name: str) -> int:
    number = args.get(name, type=int)
    if number is None or number < 0:
        raise InvalidRequest(f"{name} is missing or is no number of characters")
    return number
