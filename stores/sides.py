"""The two sides of a store: a collection that is built anew stands beside its present form.

The kinds `chroma` and `chroma:2` are the same server. The second side stores the collection `main`
under the name `main:2`; no collection's own name has a colon (`vocabulary.NAME`). `callslip
reindex` builds a collection on its other side and switches, as a move to another store does.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast

from callslip.stores.contract import Store
from callslip.stores.records import CollectionSchema

SECOND = ":2"
"""The end of the kind of a second side, and of the names of collections there."""

_OF_COLLECTION = frozenset(
    name
    for name, method in inspect.getmembers(Store, inspect.isfunction)
    if list(inspect.signature(method).parameters)[1:2] == ["collection"]
)
"""The methods whose first argument is the name of a collection."""


def kind_of(side: str) -> str:
    """The kind of store of a side, as settings and users name it."""
    return side.removesuffix(SECOND)


def other_side(side: str) -> str:
    """The side of the same store that a collection on this side is built on anew."""
    return kind_of(side) if side.endswith(SECOND) else side + SECOND


def finishing(collection: str, home: str, other: str, *, switched: bool) -> str:
    """The command that finishes an interrupted move or rebuild of a collection.

    `home` is the collection's side; `other` is the target, or after the switch the previous side.
    """
    if kind_of(home) == kind_of(other):
        return f"callslip reindex {collection}"
    return f"callslip migrate {collection} --to {kind_of(home if switched else other)}"


def both_sides(kinds: Iterable[str]) -> list[str]:
    """Each kind and its second side."""
    return [side for kind in kinds for side in (kind, kind + SECOND)]


def with_sides(store_of: Callable[[str], Store]) -> Callable[[str], Store]:
    """The function that returns the client of a side, made of one that knows only kinds."""
    return lambda side: side_of(store_of(kind_of(side)), side)


def side_of(store: Store, side: str) -> Store:
    """The client of a side of this store."""
    return cast(Store, _SecondSide(store, side)) if side.endswith(SECOND) else store


class _SecondSide:
    """A `Store` with the collections of the second side, under their own names."""

    def __init__(self, store: Store, kind: str) -> None:
        self._store, self.kind = store, kind

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._store, name)
        if name not in _OF_COLLECTION:
            return value
        return lambda collection, *rest, **more: value(collection + SECOND, *rest, **more)

    def ensure_schema(self, schema: CollectionSchema) -> None:
        """As `Store.ensure_schema`."""
        self._store.ensure_schema(replace(schema, name=schema.name + SECOND))

    def schema(self, collection: str) -> CollectionSchema:
        """As `Store.schema`."""
        return replace(self._store.schema(collection + SECOND), name=collection)

    def collections(self) -> list[str]:
        """The collections on the second side, by their own names."""
        names = self._store.collections()
        return [name.removesuffix(SECOND) for name in names if name.endswith(SECOND)]

    def maintain(self) -> None:
        """Nothing: the first side maintains both."""

    def close(self) -> None:
        """Nothing: the first side closes both."""
