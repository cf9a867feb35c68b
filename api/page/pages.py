"""The page at /: collections, documents with their steps, hits and answers, rendered here.

Searches, questions and reading need no JavaScript. static/page.js uploads and deletes through the
API, and polls `/page/documents` while a document is being ingested. static/answers.js shows the
progress of an answer and stores conversations.
"""

import json
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from flask import (
    Blueprint,
    Response,
    make_response,
    render_template,
    request,
    stream_with_context,
)
from markupsafe import Markup, escape
from werkzeug.datastructures import MultiDict

from callslip.agent.messages import Answer, NodeMessage
from callslip.api.http import responses
from callslip.api.http.context import current
from callslip.api.http.origins import is_same_origin, searches_cost
from callslip.api.http.validity import with_validity
from callslip.api.identity import batch_names
from callslip.api.identity.current import caller, check_collection, check_scope, known_caller
from callslip.api.messages import documents as messages
from callslip.api.page.answers import PageQuestion, ShownAnswer, page_question, repeatable_question
from callslip.api.page.markdown import is_markdown, passage_of
from callslip.api.page.marking import Passage, whole
from callslip.api.page.passages import PassageLocation, read
from callslip.api.page.search_form import SearchForm
from callslip.api.page.visible import visible_document
from callslip.api.v1.answers import answering
from callslip.api.v1.collections import visible_collections, visible_tenants
from callslip.errors import CallslipError, CollectionNotFound
from callslip.retrieval.messages import Hit, SearchResponse
from callslip.stores.ledger import CollectionRecord
from callslip.stores.properties.filters import OPERATORS
from callslip.stores.records import FILTERABLE, TIMES, table_header
from callslip.stores.schemas import DEFAULT_COLLECTION
from callslip.tasks.search import ask
from callslip.vocabulary import STAGES, not_in_force

SHOWN = 50
"""Documents on one page of the list."""

LOOKED_BACK_SECONDS, STAYS_SECONDS = 86_400.0, 600.0
"""The page shows a batch until it received no document for a day, and a finished batch for 10
min."""

BATCHES = 3
"""The most batches that the page shows."""

blueprint = Blueprint("pages", __name__)


@dataclass(frozen=True)
class ShownHit:
    """A hit with the excerpt of its passage that the list shows."""

    hit: Hit
    heading: Passage
    passage: Passage | Markup
    readable: bool
    """Whether the ledger has a text of the document, which the page of the passage can show."""


@dataclass(frozen=True)
class DocumentList:
    """One page of a collection's documents, newest first."""

    collection: str
    documents: tuple[messages.Document, ...]
    states: dict[str, int]
    before: float | None
    next_before: float | None
    batches: tuple[messages.Batch, ...]

    @property
    def unfinished(self) -> bool:
        """Whether any document of the collection is still being ingested."""
        return self.states.get("queued", 0) > 0

    @property
    def tally(self) -> str:
        """The counts in words, e.g. `12 live, 2 on the way`."""
        words = {"live": "live", "queued": "on the way", "failed": "failed"}
        counts = [f"{self.states[s]} {word}" for s, word in words.items() if self.states.get(s)]
        return ", ".join(counts) or "No documents yet"

    @property
    def property_names(self) -> list[str]:
        """The names for filters: fields of all passages, properties of the listed documents."""
        fields = (*FILTERABLE, *TIMES)
        return [*fields, *sorted({p for d in self.documents for p in d.properties} - {*fields})]


@dataclass(frozen=True)
class Outcome:
    """The answer and the hits for a form; `error` is that of the first part that failed."""

    answer: ShownAnswer | None = None
    response: SearchResponse | None = None
    hits: tuple[ShownHit, ...] = ()
    error: CallslipError | None = None


@blueprint.get("/")
def page() -> Response:
    """The whole page: with `q` in the query string the hits, with `ask` an answer above them.

    What costs tokens runs only if a page of this server sent the form; for a link of another site
    the page has the form with the question, and its reader sends it.
    """
    form = SearchForm.of(request.args)
    collections = visible_collections()
    try:
        chosen = _chosen(collections, request.args.get("collection"))
    except CollectionNotFound as error:
        return _html("page.html", error.status, collections=collections, form=form, error=error)
    if chosen is None:
        return _html("page.html", collections=collections, form=form)
    sent = "q" in request.args
    waits = sent and (form.ask or searches_cost()) and not is_same_origin()
    outcome = Outcome()
    if sent and not (waits and searches_cost()):
        outcome = _outcome(replace(form, ask=form.ask and not waits), chosen)
    return _html(
        "page.html",
        outcome.error.status if outcome.error else 200,
        collections=collections,
        with_tenants=current().ledger.collections.get(chosen).schema.tenants,
        tenants=visible_tenants(chosen),
        document_list=_list_documents(chosen, request.args),
        waits=waits,
        costs=searches_cost() or current().settings.llm.base_url is not None,
        **_values(form, chosen, outcome),
    )


@blueprint.get("/page/documents")
def document_list() -> Response:
    """Render only the list of documents."""
    chosen = _existing(request.args.get("collection", ""))
    return _html("documents.html", document_list=_list_documents(chosen, request.args))


@blueprint.post("/page/answer")
def answer_live() -> Response:
    """Stream the progress of an answer, then the answer and the hits, to the page's script."""
    form = SearchForm.of(request.form)
    chosen = _existing(request.form.get("collection", ""))
    form.request(chosen)
    question = page_question(form.question(chosen))

    def events(followed: answering.Followed) -> Iterator[str]:
        return stream_with_context(_events(form, chosen, question, followed))

    return answering.stream(question.request, events)


@blueprint.get("/page/passage")
def passage() -> Response:
    """A passage in its document, with the words of the query `q` marked.

    The other parameters are those of `PassageLocation.of`.
    """
    record = visible_document(request.args.get("document", ""))
    query = request.args.get("q", "")[: current().settings.search.max_query_chars]
    reading = read(record, PassageLocation.of(request.args), query)
    return _html("passage.html", document=responses.document(record), reading=reading)


@blueprint.errorhandler(CallslipError)
def _failed(error: CallslipError) -> Response:
    return _html("problem.html", error.status, error=error)


@blueprint.after_app_request
def _with_retry_after(response: Response) -> Response:
    if response.status_code in (429, 503):
        response.headers.setdefault("Retry-After", f"{CallslipError.retry_after:.0f}")
    return response


@blueprint.app_template_filter("seconds")
def _seconds(seconds: float) -> str:
    """A duration in words, e.g. `2 min 5 s`."""
    if seconds < 0.05:
        return "<0.1 s"
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return " ".join(f"{n} {unit}" for n, unit in ((minutes, "min"), (rest, "s")) if n)


@blueprint.app_template_filter("sentence")
def _sentence(detail: str) -> str:
    """An error's detail with a full stop. Its first letter stays: it may be that of a file."""
    return f"{detail.rstrip('.')}."


@blueprint.app_template_filter("coded")
def _coded(text: str) -> Markup:
    """A text with its commands, between backticks, as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704


@blueprint.app_template_filter("not_in_force")
def _not_in_force(response: SearchResponse | Answer, requested: str) -> str:
    """What a search or an answer left out because of its day, and where to change that."""
    day = response.as_of.day(requested)
    return not_in_force(response.not_in_force or 0, day, "“any” in the option “In force on”")


@blueprint.app_template_filter("counts")
def _counts(counts: dict[str, int]) -> str:
    """The counts of a step, e.g. `1,204 chars, 3 pages`, without counts of 0."""
    return ", ".join(
        f"{n:,} {name.removesuffix('s') if n == 1 else name}" for name, n in counts.items() if n
    )


def _html(template: str, status: int = 200, **values: object) -> Response:
    settings = current().settings
    rendered = render_template(
        template,
        search=settings.search,
        max_upload_mb=settings.api.max_upload_mb,
        operators=OPERATORS,
        may_create=known_caller().may("write") and not known_caller().limited,
        **values,
    )
    return make_response(rendered, status)


def _existing(collection: str) -> str:
    """The name of a collection that exists and that the caller may see."""
    check_collection(collection)
    return current().ledger.collections.get(collection).name


def _chosen(collections: list[tuple[CollectionRecord, int]], requested: str | None) -> str | None:
    """The requested collection, or the default one, or the first; None if there is none."""
    names = [record.name for record, _ in collections]
    if names and requested and requested not in names:
        raise CollectionNotFound(
            f"collection {requested!r} does not exist", hint="Choose one of the collections above."
        )
    if not names:
        return None
    return requested or (DEFAULT_COLLECTION if DEFAULT_COLLECTION in names else names[0])


def _outcome(form: SearchForm, collection: str) -> Outcome:
    """Run the form. If the answer fails, the page still has the hits, and the reverse."""
    shown, query, error = None, form.query, None
    if form.ask:
        try:
            form.request(collection)  # raises before a model call if the form is invalid
            question = repeatable_question(form.question(collection))
            shown = question.shown(answering.ask(question.request, again=question.again))
            query = shown.answer.understood
        except CallslipError as problem:
            error = problem
    return _with_hits(form, collection, query, shown, error)


def _events(
    form: SearchForm, collection: str, question: PageQuestion, followed: answering.Followed
) -> Iterator[str]:
    """Yield server-sent events: `stage` with a word for each node, then `outcome` with markup."""
    shown, query, error = None, form.query, None
    try:
        for message in followed:
            if isinstance(message, Answer):
                shown = question.shown(message)
                query = message.understood
            elif isinstance(message, NodeMessage) and (stage := STAGES.get(message.node)):
                yield _event("stage", stage)
    except CallslipError as problem:
        error = problem
    outcome = _with_hits(form, collection, query, shown, error)
    markup = render_template(
        "outcome.html", search=current().settings.search, **_values(form, collection, outcome)
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
) -> Outcome:
    try:
        wanted = replace(form, query=query).request(collection)
        check_scope(collection, wanted.tenant)
        response = ask(current(), wanted)
    except CallslipError as problem:
        return Outcome(shown, None, (), error or problem)
    return Outcome(shown, response, _shown(response), error)


def _values(form: SearchForm, collection: str, outcome: Outcome) -> dict[str, object]:
    """The variables of outcome.html."""
    return {
        "form": form,
        "chosen": collection,
        "attached": current().ledger.collections.get(collection).attachment,
        "addresses": caller().may("admin"),
        "shown": outcome.answer,
        "response": outcome.response,
        "hits": outcome.hits,
        "error": outcome.error,
    }


def _list_documents(collection: str, args: MultiDict[str, str]) -> DocumentList:
    before = args.get("before", type=float)
    tenants = caller().tenants
    states = current().ledger.documents.states(
        collection, tenants=tenants
    )  # first: a document that is done in the counts is done in the list too
    records = current().ledger.documents.find(
        collection, tenants=tenants, limit=SHOWN, before=before
    )
    return DocumentList(
        collection=collection,
        documents=tuple(with_validity(records)),
        states=states,
        before=before,
        next_before=records[-1].created_at if len(records) == SHOWN else None,
        batches=_batches(collection),
    )


def _batches(collection: str) -> tuple[messages.Batch, ...]:
    """The batches of several documents that are in progress or finished a short time ago."""
    now = time.time()
    limits, ledger = caller(), current().ledger
    ids: Iterable[str] = ledger.batches.recent(
        collection, now - LOOKED_BACK_SECONDS, limits.tenants
    )
    if limits.limited:
        ids = (each for each in ids if limits.sees_all(ledger.batches.scopes(each)))
    shown = islice(ids, BATCHES)
    reports = (batch_names.shown(ledger.batches.report(batch_id)) for batch_id in shown)
    batches = [responses.batch(report) for report in reports]
    return tuple(
        batch
        for batch in batches
        if max(batch.expected or 0, batch.submitted) > 1
        and (batch.left or _ended_at(batch) > now - STAYS_SECONDS)
    )


def _ended_at(batch: messages.Batch) -> float:
    return (batch.started_at or batch.created_at) + (batch.seconds or 0.0)


def _shown(response: SearchResponse) -> tuple[ShownHit, ...]:
    query = response.query
    readable = current().ledger.versions.readable([hit.document_id for hit in response.hits])
    return tuple(
        ShownHit(
            hit,
            heading=whole(hit.heading or hit.title, query),
            passage=passage_of(_text(hit), hit.heading, hit.filename, query),
            readable=hit.document_id in readable,
        )
        for hit in response.hits
    )


def _text(hit: Hit) -> str:
    """The text of a hit; of Markdown below the header of the table that it continues."""
    return table_header(hit.properties) + hit.text if is_markdown(hit.filename) else hit.text
