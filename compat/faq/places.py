"""The collections of an FAQ: one for each strategy, beside each other."""

import re
from contextlib import suppress

from callslip.errors import CollectionNotFound, InvalidRequest
from compat.floor import Floor
from config import get_settings
from config.faq import STRATEGIES, Strategy
from models.analyzer import VERSION as ANALYZER
from stores.filters import is_unicode
from stores.ledger import CollectionRecord
from stores.records import CollectionSchema, VectorSpec
from stores.schemas import NAME, check_tenant

MOST_COLLECTIONS = 16
"""That one question is asked of."""


def sibling(name: str, strategy: Strategy) -> str:
    """The collection in which the FAQ of this name is embedded so; InvalidRequest for no name."""
    collection = f"{name}__{strategy}"
    if not re.fullmatch(NAME, name) or not re.fullmatch(NAME, collection):
        longest = 64 - len("__question_answer")
        raise InvalidRequest(
            f"{name!r} is no name of an FAQ",
            hint=f"Letters, digits, `.`, `_`, `-`, at most {longest} of them, and a letter or"
            " digit at both ends.",
        )
    return collection


def siblings(floor: Floor, name: str) -> dict[Strategy, CollectionRecord]:
    """The collections that there are of an FAQ; CollectionNotFound where there is none."""
    found: dict[Strategy, CollectionRecord] = {}
    for strategy in STRATEGIES:
        with suppress(CollectionNotFound):
            found[strategy] = floor.ledger.collections.get(sibling(name, strategy))
    if not found:
        raise CollectionNotFound(
            f"there is no FAQ {name!r}", hint="`callslip ingest-faq FILE -c NAME` makes one."
        )
    return found


def made(floor: Floor, name: str, store: str | None = None) -> CollectionRecord:
    """The collection of this name, made for vectors of cosine distance where it is missing.

    CollectionExists where it is in another store than the one named, InvalidRequest where it has
    tenants.
    """
    ledger = floor.ledger
    with suppress(CollectionNotFound):
        found = ledger.collections.get(name)
        check_tenant(found.schema, "")
        if store in (None, found.store):
            return found
    if not re.fullmatch(NAME, name):
        raise InvalidRequest(
            f"{name!r} is no name of a collection",
            hint="Letters, digits, `.`, `_`, `-`; at most 64, a letter or digit at both ends.",
        )
    kind, embedder = store or get_settings().store, floor.embedder()
    schema = CollectionSchema(name, VectorSpec(embedder.dimension, "cosine", normalized=True))
    floor.store_of(kind).check_names(name)
    record, _ = ledger.collections.create(
        schema, store=kind, embedder=embedder.model, analyzer=ANALYZER
    )
    floor.store_of(kind).ensure_schema(schema)
    return record


def names_of(given: object) -> tuple[str, ...]:
    """The collections that are named, each once; without any the one of the settings.

    InvalidRequest where they are no names, none or too many.
    """
    if given is None:
        return (get_settings().faq.collection,)
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple):
        raise InvalidRequest("collection_name is neither a text nor a list of texts")
    if not 1 <= len(names) <= MOST_COLLECTIONS:
        raise InvalidRequest(
            f"{len(names)} collections are named, 1 to {MOST_COLLECTIONS} can be searched at once"
        )
    if not all(isinstance(name, str) and name and is_unicode(name) for name in names):
        raise InvalidRequest("a name of a collection is no text, or an empty one")
    return tuple(dict.fromkeys(names))
