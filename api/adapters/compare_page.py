"""The page at /page/compare: sends one question to several collections and lists their hits.

It needs no JavaScript.
"""

from collections.abc import Callable
from dataclasses import dataclass

from flask import Blueprint, Response, make_response, render_template, request
from werkzeug.datastructures import MultiDict

from callslip.api.adapters import faq
from callslip.api.http.context import current
from callslip.api.http.origins import is_same_origin, searches_cost
from callslip.api.page.marking import Passage, body, excerpt, whole
from callslip.api.v1.collections import visible_collections
from callslip.compat.errors import validated
from callslip.compat.faq.collections import MOST_COLLECTIONS
from callslip.compat.faq.compare import ComparedHit, Comparison, Question, compare
from callslip.config.sections.faq import STRATEGIES
from callslip.errors import CallslipError, InvalidRequest
from callslip.messages.values import whole_number
from callslip.models.text.language import lang

SHOWN = 300
"""Characters of a hit's text that the page shows."""

LONGEST_HEADING = 200

blueprint = Blueprint("comparing", __name__)


@dataclass(frozen=True)
class Form:
    """The fields as the user typed them; for an empty field the settings apply."""

    query: str
    top_k: str
    threshold: str
    collections: tuple[str, ...]

    @classmethod
    def of(cls, args: MultiDict[str, str], there: list[str]) -> "Form":
        """Read the form from a query string; without collections, choose those of an FAQ."""
        return cls(
            query=args.get("q", ""),
            top_k=args.get("top_k", "").strip(),
            threshold=args.get("threshold", "").strip(),
            collections=tuple(args.getlist("collection")) or _usual(there),
        )

    def question(self) -> Question:
        """Return the question; raise InvalidRequest with the name of an invalid field."""
        fields = {
            "query": self.query,
            "top_k": _number("hits of each", whole_number, self.top_k),
            "threshold": _number("least similarity", float, self.threshold),
        }
        return validated(Question, fields)


@dataclass(frozen=True)
class ShownHit:
    """A hit with the parts that the page shows."""

    hit: ComparedHit
    heading: Passage
    passage: Passage
    lang: str
    is_row: bool
    """Whether it is a row of an FAQ, which has its question as its heading."""
    readable: bool
    """Whether the ledger has a text of the document, which the page of the passage can show."""


@dataclass(frozen=True)
class Column:
    """The hits of one collection, or of all collections together (empty name)."""

    name: str
    hits: tuple[ShownHit, ...]


@blueprint.get("/page/compare")
def page() -> Response:
    """Show the form and, if the query string has `q`, the hits of each collection and of all."""
    there = sorted((record.name for record, _ in visible_collections()), key=_beside)
    form = Form.of(request.args, there)
    columns: list[Column] = []
    error: CallslipError | None = None
    waits = "q" in request.args and searches_cost() and not is_same_origin()
    if "q" in request.args and not waits:
        try:
            columns = _columns(
                compare(faq.faq_context(), form.question(), faq.checked_names(form.collections))
            )
        except CallslipError as problem:
            error = problem
    settings = current().settings
    markup = render_template(
        "compare.html",
        form=form,
        there=there,
        columns=columns,
        error=error,
        waits=waits,
        usual=settings.faq,
        search=settings.search,
        most=MOST_COLLECTIONS,
    )
    return make_response(markup, error.status if error else 200)


def _columns(comparison: Comparison) -> list[Column]:
    each = [
        Column(name, _shown(hits, comparison.query))
        for name, hits in comparison.collections.items()
    ]
    merged = [Column("", _shown(comparison.merged, comparison.query))] if len(each) > 1 else []
    return [*each, *merged]


def _shown(hits: list[ComparedHit], query: str) -> tuple[ShownHit, ...]:
    readable = current().ledger.versions.readable([hit.document_id for hit in hits])
    return tuple(_hit(hit, query, readable=hit.document_id in readable) for hit in hits)


def _hit(hit: ComparedHit, query: str, *, readable: bool) -> ShownHit:
    question, answer = hit.metadata.get("question"), hit.metadata.get("answer")
    row = isinstance(question, str) and isinstance(answer, str)
    heading = str(question) if row else hit.heading or hit.title
    heading = " ".join(heading.split())[:LONGEST_HEADING]
    text = str(answer) if row else body(hit.text, hit.heading)
    return ShownHit(
        hit,
        whole(heading, query),
        excerpt(text, query, SHOWN),
        lang(text),
        is_row=row,
        readable=readable and not row,
    )


def _beside(name: str) -> tuple[str, int]:
    """Sort by name; the collections of one FAQ are in the order of `STRATEGIES`."""
    of, _, strategy = name.rpartition("__")
    if of and strategy in STRATEGIES:
        return of, STRATEGIES.index(strategy)
    return name, -1


def _usual(there: list[str]) -> tuple[str, ...]:
    """The collections of the FAQ in the settings, or of the first FAQ, or the first two."""
    names = [name.rpartition("__")[0] for name in there if name.rpartition("__")[2] in STRATEGIES]
    usual = current().settings.faq.collection.rpartition("__")[0]
    of_one = usual if usual in names else names[0] if names else ""
    chosen = tuple(f"{of_one}__{s}" for s in STRATEGIES if f"{of_one}__{s}" in there)
    return chosen or tuple(there[:2])


def _number(field: str, read: Callable[[str], float], typed: str) -> float | None:
    if not typed:
        return None
    try:
        return read(typed)
    except ValueError:
        raise InvalidRequest(f"{field}: {typed[:20]!r} is no number") from None
