"""The collections of an FAQ, one for each embedding strategy."""

import re
from collections.abc import Iterable
from contextlib import suppress

from callslip.compat.context import AdapterContext
from callslip.compat.nearest import NO_EMBEDDER
from callslip.config.sections.faq import STRATEGIES, Strategy
from callslip.errors import CollectionExists, CollectionNotFound, InvalidRequest
from callslip.models.text.analyzer import version_of
from callslip.stores.ledger import CollectionRecord
from callslip.stores.properties.filters import is_unicode
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.stores.schemas import NAME, check_tenant
from callslip.stores.sides import kind_of

MOST_COLLECTIONS = 16
"""The most collections that one query searches."""

LONGEST = 64 - len("__question_answer")
"""The longest name of an FAQ that fits the collection names of every strategy."""


def sibling(name: str, strategy: Strategy) -> str:
    """Return the name of the FAQ's collection for this strategy.

    Raises InvalidRequest if the FAQ's name is invalid.
    """
    if not re.fullmatch(NAME, name) or len(name) > LONGEST:
        raise InvalidRequest(
            f"{name!r} is no name of an FAQ",
            hint=f"Letters, digits, `.`, `_`, `-`, at most {LONGEST} of them, and a letter or"
            " digit at both ends.",
        )
    return f"{name}__{strategy}"


def siblings(context: AdapterContext, name: str) -> dict[Strategy, CollectionRecord]:
    """Return the existing collections of an FAQ by strategy.

    Raises CollectionNotFound if none exists.
    """
    records: dict[Strategy, CollectionRecord] = {}
    for strategy in STRATEGIES:
        with suppress(CollectionNotFound):
            records[strategy] = context.ledger.collections.get(sibling(name, strategy))
    if not records:
        raise no_faq(name)
    return records


def no_faq(name: str) -> CollectionNotFound:
    """The error for an FAQ without collections."""
    return CollectionNotFound(
        f"there is no FAQ {name!r}", hint="`callslip ingest-faq FILE -c NAME` makes one."
    )


def made(
    context: AdapterContext, names: Iterable[str], store: str | None = None
) -> list[CollectionRecord]:
    """Return the collections of these names, and make the missing ones with cosine vectors.

    Makes none unless all can be made. Raises CollectionExists if one is in another store than
    `store`, InvalidRequest if one has tenants, StoreDown if the store does not answer.
    """
    existing = {name: _existing(context, name, store) for name in names}
    missing = [name for name, record in existing.items() if record is None]
    if missing:
        _check(context, missing, store or context.settings.store)
    return [record or _make(context, name, store) for name, record in existing.items()]


def _existing(context: AdapterContext, name: str, store: str | None) -> CollectionRecord | None:
    with suppress(CollectionNotFound):
        record = context.ledger.collections.get(name)
        check_tenant(record.schema, "")
        if store not in (None, kind_of(record.store)):
            raise CollectionExists(
                f"collection {name!r} exists with store {kind_of(record.store)!r}",
                hint=f"`callslip migrate {name} --to {store}` moves it to another store.",
            )
        return record
    return None


def _check(context: AdapterContext, names: Iterable[str], kind: str) -> None:
    if context.embedder().lexical_only:
        raise InvalidRequest(NO_EMBEDDER, hint="Set embedder.kind in the settings.")
    store, going = context.store_of(kind), set(context.ledger.collections.deleted())
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
        store.check_names(name)
    store.ping()


def _make(context: AdapterContext, name: str, store: str | None) -> CollectionRecord:
    kind, embedder = store or context.settings.store, context.embedder()
    schema = CollectionSchema(name, VectorSpec(embedder.dimension, "cosine", normalized=True))
    record, _ = context.ledger.collections.create(
        schema,
        store=kind,
        embedder=embedder.model,
        analyzer=version_of(context.settings.language_codes),
    )
    context.store_of(kind).ensure_schema(schema)
    return record


def names_of(requested: object, default: str) -> tuple[str, ...]:
    """Return the names of the requested collections, each once; the default if there is no request.

    Raises InvalidRequest for an invalid name, for an empty list, or for more than
    `MOST_COLLECTIONS` names.
    """
    if requested is None:
        return (default,)
    names = [requested] if isinstance(requested, str) else requested
    if not isinstance(names, list | tuple):
        raise InvalidRequest("collection_name is neither a text nor a list of texts")
    if not 1 <= len(names) <= MOST_COLLECTIONS:
        raise InvalidRequest(
            f"{len(names)} collections are named, 1 to {MOST_COLLECTIONS} can be searched at once"
        )
    if not all(isinstance(name, str) and name and is_unicode(name) for name in names):
        raise InvalidRequest("a name of a collection is no text, or an empty one")
    return tuple(dict.fromkeys(names))
