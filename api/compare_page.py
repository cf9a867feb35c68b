"""The page at /page/compare: one question to several collections, their hits side by side.

It needs no JavaScript.
"""

from dataclasses import dataclass

from flask import Blueprint, Response, make_response, render_template, request
from werkzeug.datastructures import MultiDict

from api import faq
from api.marking import Passage, excerpt, whole
from callslip.errors import CallslipError, InvalidRequest
from compat.faq.comparing import Comparison, Found, Question, compare
from compat.faq.places import MOST_COLLECTIONS, names_of
from compat.raising import validated
from config import get_settings
from config.faq import STRATEGIES
from models.language import lang
from tasks.process import ledger

SHOWN = 300
"""Characters of a hit."""

LONGEST_HEADING = 200

blueprint = Blueprint("comparing", __name__)


@dataclass(frozen=True)
class Form:
    """The fields as they were typed; an empty one leaves the choice to the settings."""

    query: str
    top_k: str
    threshold: str
    collections: tuple[str, ...]

    @classmethod
    def of(cls, args: MultiDict[str, str], there: list[str]) -> "Form":
        """The form in a query string; without collections those of an FAQ."""
        return cls(
            query=args.get("q", ""),
            top_k=args.get("top_k", "").strip(),
            threshold=args.get("threshold", "").strip(),
            collections=tuple(args.getlist("collection")) or _usual(there),
        )

    def question(self) -> Question:
        """The question; InvalidRequest, naming the field that is wrong."""
        asked = {
            "query": self.query,
            "top_k": _number("hits of each", int, self.top_k),
            "threshold": _number("least similarity", float, self.threshold),
        }
        return validated(Question, asked)


@dataclass(frozen=True)
class ShownHit:
    """A hit with the parts of it that the page shows."""

    found: Found
    heading: Passage
    passage: Passage
    lang: str


@dataclass(frozen=True)
class Column:
    """The hits of one collection, or of all."""

    name: str
    hits: tuple[ShownHit, ...]


@blueprint.get("/page/compare")
def page() -> Response:
    """The form; with `q` in its address also the hits of each collection and of all together."""
    there = sorted((record.name for record, _ in ledger().collections.all()), key=_beside)
    form = Form.of(request.args, there)
    columns: list[Column] = []
    error: CallslipError | None = None
    if "q" in request.args:
        try:
            columns = _columns(
                compare(faq.desk_floor(), form.question(), names_of(form.collections))
            )
        except CallslipError as problem:
            error = problem
    settings = get_settings()
    markup = render_template(
        "compare.html",
        form=form,
        there=there,
        columns=columns,
        error=error,
        usual=settings.faq,
        search=settings.search,
        most=MOST_COLLECTIONS,
    )
    return make_response(markup, error.status if error else 200)


def _columns(found: Comparison) -> list[Column]:
    each = [Column(name, _shown(hits, found.query)) for name, hits in found.collections.items()]
    merged = [Column("", _shown(found.merged, found.query))] if len(each) > 1 else []
    return [*each, *merged]


def _shown(hits: list[Found], query: str) -> tuple[ShownHit, ...]:
    return tuple(_hit(hit, query) for hit in hits)


def _hit(hit: Found, query: str) -> ShownHit:
    question, answer = hit.metadata.get("question"), hit.metadata.get("answer")
    row = isinstance(question, str) and isinstance(answer, str)
    heading = " ".join(str(question).split())[:LONGEST_HEADING] if row else hit.id
    text = str(answer) if row else hit.text
    return ShownHit(hit, whole(heading, query), excerpt(text, query, SHOWN), lang(text))


def _beside(name: str) -> tuple[str, int]:
    """By name, but those of one FAQ in the order that the command line has too."""
    of, _, strategy = name.rpartition("__")
    if of and strategy in STRATEGIES:
        return of, STRATEGIES.index(strategy)
    return name, -1


def _usual(there: list[str]) -> tuple[str, ...]:
    """The collections of the settings' FAQ, else of the first there is, else the first two."""
    names = [name.rpartition("__")[0] for name in there if name.rpartition("__")[2] in STRATEGIES]
    usual = get_settings().faq.collection.rpartition("__")[0]
    of_one = usual if usual in names else names[0] if names else ""
    chosen = tuple(f"{of_one}__{s}" for s in STRATEGIES if f"{of_one}__{s}" in there)
    return chosen or tuple(there[:2])


def _number(field: str, kind: type[int] | type[float], typed: str) -> float | None:
    if not typed:
        return None
    try:
        return kind(typed)
    except ValueError:
        raise InvalidRequest(f"{field}: {typed[:20]!r} is no number") from None
