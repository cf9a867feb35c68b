"""/v1/faq: rows of an FAQ in its collections; /v1/compare: a question to several collections."""

from typing import Annotated

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from api.answers import answer
from api.messages import Request
from callslip.errors import InvalidRequest
from compat.faq import entries
from compat.faq.comparing import Comparison, Question, compare
from compat.faq.places import MOST_COLLECTIONS, made, names_of, sibling, siblings
from compat.faq.rows import Row, RowId, twice
from compat.floor import Floor, floor
from config import get_settings
from config.faq import STRATEGIES, Strategy
from config.settings import StoreKind
from retrieval.messages import Text
from stores.registry import check_set_up
from tasks import process
from tasks.search import ask

MOST_ROWS, MOST_IDS = 500, 10_000
"""Of one request."""

blueprint = APIBlueprint("faq", __name__, abp_tags=[Tag(name="faq")])

Strategies = Annotated[list[Strategy], Field(min_length=1)]


class FaqPath(BaseModel):
    name: str = Field(description="the FAQ; its collections are `NAME__STRATEGY`")


class Rows(Request):
    """Rows to write; others of the FAQ stay."""

    rows: list[Row] = Field(min_length=1, max_length=MOST_ROWS)
    strategies: Strategies = Field(
        list(STRATEGIES), description="what is embedded of each row, in a collection each"
    )
    store: StoreKind | None = Field(
        None, description="where a new collection is kept; default from the settings"
    )


class Counts(BaseModel):
    """What became of the rows in one collection."""

    new: int
    changed: int
    unchanged: int


class FaqWritten(BaseModel):
    """By collection."""

    collections: dict[str, Counts]


class Listed(BaseModel):
    """The ids of all rows, by collection."""

    collections: dict[str, list[int | str]]


class Going(Request):
    """Rows to remove."""

    ids: list[RowId] = Field(min_length=1, max_length=MOST_IDS)
    strategies: Strategies | None = Field(None, description="left out: from every collection")


class Removed(BaseModel):
    """How many rows there were, by collection."""

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
    """Write rows into the FAQ's collections, made where they are missing; unchanged ones stay."""
    for at, first in twice({at: row.id for at, row in enumerate(body.rows)}).items():
        raise InvalidRequest(f"rows.{at}.id: is the id of rows.{first} too")
    if body.store:
        check_set_up(get_settings(), body.store)
    strategies = list(dict.fromkeys(body.strategies))
    places = made(desk_floor(), [sibling(path.name, s) for s in strategies], body.store)
    told = {
        place.name: entries.put(desk_floor(), place, strategy, body.rows)
        for strategy, place in zip(strategies, places, strict=True)
    }
    return answer(FaqWritten(collections={n: Counts(**c.__dict__) for n, c in told.items()}))


@blueprint.get("/v1/faq/<string:name>", responses={200: Listed})
def list_rows(path: FaqPath) -> Response:
    """The ids of the rows in each of the FAQ's collections."""
    places = siblings(desk_floor(), path.name).values()
    return answer(
        Listed.model_validate(
            {"collections": {p.name: entries.ids(desk_floor(), p) for p in places}}
        )
    )


@blueprint.post("/v1/faq/<string:name>/remove", responses={200: Removed})
def remove_rows(path: FaqPath, body: Going) -> Response:
    """Remove rows by their ids: hidden at once; ids that are not there are nothing to do."""
    places = siblings(desk_floor(), path.name)
    chosen = {p.name: p for s, p in places.items() if s in (body.strategies or STRATEGIES)}
    removed = {name: entries.remove(desk_floor(), p, body.ids) for name, p in chosen.items()}
    return answer(Removed(collections=removed))


@blueprint.post("/v1/compare", responses={200: Comparison})
def compare_collections(body: Compared) -> Response:
    """Ask several collections by similarity alone: the hits of each, and of all together."""
    return answer(compare(desk_floor(), body, names_of(body.collections)))


def desk_floor() -> Floor:
    """Searches by the queue, as every search of the desk."""
    return floor(ask, process.store)
