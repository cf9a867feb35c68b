"""/v1/faq: rows of an FAQ in its collections; /v1/compare: one question to several collections."""

from typing import Annotated

from flask import Response, request
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.identity.current import caller, check_scope, known_caller
from callslip.api.identity.limits import spend_documents
from callslip.api.messages.documents import Request
from callslip.compat.context import AdapterContext, adapter_context
from callslip.compat.faq import entries
from callslip.compat.faq.collections import (
    MOST_COLLECTIONS,
    made,
    names_of,
    no_faq,
    sibling,
    siblings,
)
from callslip.compat.faq.compare import Comparison, Question, compare
from callslip.compat.faq.rows import Row, RowId, twice
from callslip.config.sections.faq import STRATEGIES, Strategy
from callslip.config.settings import StoreKind
from callslip.errors import InvalidRequest
from callslip.retrieval.messages import Text
from callslip.stores.ledger import CollectionRecord
from callslip.stores.registry import check_set_up
from callslip.tasks import compute

MOST_ROWS, MOST_IDS = 500, 10_000
"""Limits of one request."""

blueprint = APIBlueprint("faq", __name__, abp_tags=[Tag(name="faq")])

Strategies = Annotated[list[Strategy], Field(min_length=1)]


class FaqPath(BaseModel):
    name: str = Field(description="the FAQ; its collections are `NAME__STRATEGY`")


class Rows(Request):
    """Rows to write; other rows of the FAQ do not change."""

    rows: list[Row] = Field(min_length=1, max_length=MOST_ROWS)
    strategies: Strategies = Field(
        list(STRATEGIES), description="what is embedded of each row, in a collection each"
    )
    store: StoreKind | None = Field(
        None, description="the store of a new collection; default from the settings"
    )


class Counts(BaseModel):
    """The numbers of new, changed and unchanged rows in one collection."""

    new: int
    changed: int
    unchanged: int


class FaqWritten(BaseModel):
    """The counts of each collection."""

    collections: dict[str, Counts]


class Listed(BaseModel):
    """The ids of all rows of each collection."""

    collections: dict[str, list[int | str]]


class Going(Request):
    """Rows to remove."""

    ids: list[RowId] = Field(min_length=1, max_length=MOST_IDS)
    strategies: Strategies | None = Field(None, description="left out: from every collection")


class Removed(BaseModel):
    """The number of removed rows of each collection."""

    collections: dict[str, int]


class Compared(Question):
    """A question to several collections."""

    collections: list[Text] | None = Field(
        None,
        min_length=1,
        max_length=MOST_COLLECTIONS,
        description="their names; left out: faq.collection",
    )


@blueprint.post("/v1/faq/<string:name>", responses={200: FaqWritten})
def write_rows(path: FaqPath, body: Rows) -> Response:
    """Write rows into the FAQ's collections; make missing collections, skip unchanged rows."""
    for at, first in twice({at: row.id for at, row in enumerate(body.rows)}).items():
        raise InvalidRequest(f"rows.{at}.id: is the id of rows.{first} too")
    if body.store:
        check_set_up(current().settings, body.store)
    strategies = list(dict.fromkeys(body.strategies))
    names = [sibling(path.name, s) for s in strategies]
    for name in names:
        check_scope(name, "")
    spend_documents(len(body.rows) * len(names), len(request.get_data(cache=True)))
    collections = made(faq_context(), names, body.store)
    job = {
        "collections": {p.name: s for s, p in zip(strategies, collections, strict=True)},
        "rows": [row.model_dump() for row in body.rows],
    }
    written = compute.run(current(), "faq.write", job)
    return answer(FaqWritten.model_validate({"collections": written}))


@blueprint.get("/v1/faq/<string:name>", responses={200: Listed})
def list_rows(path: FaqPath) -> Response:
    """Return the ids of the rows in each of the FAQ's collections."""
    collections = _visible_siblings(path.name).values()
    return answer(
        Listed.model_validate(
            {"collections": {p.name: entries.ids(faq_context(), p) for p in collections}}
        )
    )


@blueprint.post("/v1/faq/<string:name>/remove", responses={200: Removed})
def remove_rows(path: FaqPath, body: Going) -> Response:
    """Remove rows by their ids; searches skip them at once. Unknown ids are ignored."""
    collections = _visible_siblings(path.name)
    chosen = {p.name: p for s, p in collections.items() if s in (body.strategies or STRATEGIES)}
    removed = {name: entries.remove(faq_context(), p, body.ids) for name, p in chosen.items()}
    return answer(Removed(collections=removed))


@blueprint.post("/v1/compare", responses={200: Comparison})
def compare_collections(body: Compared) -> Response:
    """Search several collections by similarity only; list the hits of each and of all."""
    return answer(compare(faq_context(), body, checked_names(body.collections)))


def checked_names(requested: object) -> tuple[str, ...]:
    """The requested collections, each of which the caller may see."""
    names = names_of(requested, current().settings.faq.collection)
    for name in names:
        check_scope(name, "")
    return names


def _visible_siblings(name: str) -> dict[Strategy, CollectionRecord]:
    """The collections of an FAQ that the caller may see. Raises CollectionNotFound without any."""
    limits = caller()
    known = {s: r for s, r in siblings(faq_context(), name).items() if limits.sees(r.name, "")}
    if not known:
        raise no_faq(name)
    return known


def faq_context() -> AdapterContext:
    """The context of this server in the form that adapters take."""
    return adapter_context(current(), known_caller())
