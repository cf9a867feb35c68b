"""Absence is believed only from a server that is ready.

A server that starts may answer before it has read what it has: after a kill, Weaviate lists none of
its classes for up to half a second, with the status 200, and says only later that it is ready.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from callslip.errors import NotFound

T = TypeVar("T")

LISTINGS = frozenset(
    {
        "tenants",
        "chunk_ids",
        "chunk_ids_of",
        "document_ids",
        "get_documents",
        "find_ids",
        "collections",
    }
)
"""The methods of a store whose empty results count as absence. Searches call none of them for what
may well be empty; `count`, which they call, is proven by those callers that need it."""

PARTIAL = "collections"
"""The method whose results may lack some of the names: each name that is missing counts."""


def believed(ask: Callable[[], T], ready: Callable[[], None]) -> T:
    """The result of `ask`. If it raises NotFound, `ready` is called and then `ask` once more.

    `ready` raises StoreDown unless the server is ready.
    """
    try:
        return ask()
    except NotFound:
        ready()
    return ask()


def proven(ask: Callable[[], T], ready: Callable[[], None]) -> T:
    """The result of `ask`. If it is empty, `ready` is called and then `ask` once more.

    A mapping is empty if one of its values is, at any depth.
    """
    result = ask()
    if _is_whole(result):
        return result
    ready()
    return ask()


def _is_whole(result: object) -> bool:
    if isinstance(result, Mapping):
        return all(map(_is_whole, result.values()))
    return bool(result)


def confirmed(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a store, which pings the store after an empty result and then asks once more.

    `name` is one of LISTINGS. The method raises StoreDown if the store is not ready.
    """

    @wraps(method)
    def ask(store: Any, *args: Any, **named: Any) -> Any:
        result = proven(lambda: method(store, *args, **named), store.ping)
        if result and name == PARTIAL:
            store.ping()
        return result

    return ask
