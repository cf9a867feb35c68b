"""The collections of an FAQ: one for each strategy, beside each other."""

import re
from collections.abc import Iterable
from contextlib import suppress

from callslip.errors import CollectionExists, CollectionNotFound, InvalidRequest
from compat.floor import Floor
from compat.nearest import NO_EMBEDDER
from config import get_settings
from config.faq import STRATEGIES, Strategy
from models.analyzer import VERSION as ANALYZER
from stores.filters import is_unicode
from stores.ledger import CollectionRecord
from stores.records import CollectionSchema, VectorSpec
from stores.schemas import NAME, check_tenant

MOST_COLLECTIONS = 16
"""That one question is asked of."""

LONGEST = 64 - len("__question_answer")
"""Name of an FAQ, so that it fits every strategy."""


def sibling(name: str, strategy: Strategy) -> str:
    """The collection in which the FAQ of this name is embedded so; InvalidRequest for no name."""
    if not re.fullmatch(NAME, name) or len(name) > LONGEST:
        raise InvalidRequest(
            f"{name!r} is no name of an FAQ",
            hint=f"Letters, digits, `.`, `_`, `-`, at most {LONGEST} of them, and a letter or"
            " digit at both ends.",
        )
    return f"{name}__{strategy}"


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


def made(floor: Floor, names: Iterable[str], store: str | None = None) -> list[CollectionRecord]:
    """The collections of these names, made for vectors of cosine distance where they are missing.

    None is made unless all can be. CollectionExists where one is in another store than the one
    named, InvalidRequest where it has tenants, StoreDown where the store does not answer.
    """
    held = {name: _held(floor, name, store) for name in names}
    missing = [name for name, record in held.items() if record is None]
    if missing:
        _check(floor, missing, store or get_settings().store)
    return [record or _make(floor, name, store) for name, record in held.items()]


def _held(floor: Floor, name: str, store: str | None) -> CollectionRecord | None:
    with suppress(CollectionNotFound):
        found = floor.ledger.collections.get(name)
        check_tenant(found.schema, "")
        if store not in (None, found.store):
            raise CollectionExists(
                f"collection {name!r} exists with store {found.store!r}",
                hint=f"`callslip migrate {name} --to {store}` moves it to another store.",
            )
        return found
    return None


def _check(floor: Floor, names: Iterable[str], kind: str) -> None:
    if floor.embedder().lexical_only:
        raise InvalidRequest(NO_EMBEDDER, hint="Set embedder.kind in the settings.")
    place, going = floor.store_of(kind), set(floor.ledger.collections.deleted())
    for name in names:
        if not re.fullmatch(NAME, name):
            raise InvalidRequest(
                f"{name!r} is no name of a collection",
                hint="Letters, digits, `.`, `_`, `-`; at most 64, a letter or digit at both ends.",
            )
        if name in going:
            raise CollectionExists(
                f"collection {name!r} is being removed", hint="Try again in a moment."
            )
        place.check_names(name)
    place.ping()


def _make(floor: Floor, name: str, store: str | None) -> CollectionRecord:
    kind, embedder = store or get_settings().store, floor.embedder()
    schema = CollectionSchema(name, VectorSpec(embedder.dimension, "cosine", normalized=True))
    record, _ = floor.ledger.collections.create(
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
