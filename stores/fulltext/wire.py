"""The calls of a keyword index as JSON: the client writes them, the service reads them.

A call is the object of its method's arguments; its response is an object with the method's result
as RESULT, so that no response of a proxy is taken for one. `CALLS` is the whole protocol. Reading
raises KeyError, TypeError or ValueError for another form.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, cast

from callslip.stores.fulltext.contract import Entry, Keywords, Reservable
from callslip.stores.properties.filters import OPERATORS, Comparable, Condition, Where
from callslip.stores.properties.terms import PropertyTerm

Arguments = Mapping[str, Any]

RESULT = "result"

PATH = "/v1/indexes/{name}/{call}"
READY = "/v1/ready"
"""Answers a client with the key by 204."""

PROBE = "callslip_probe"
"""The index that a probe writes; in the name of a collection's index `_` precedes two digits."""


def dump(value: object) -> bytes:
    """A value as JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def entries_json(entries: list[Entry]) -> list[list[object]]:
    """The entries as JSON values."""
    return [[e.chunk_id, e.terms, dict(e.properties), e.copy] for e in entries]


def where_json(where: Where | None) -> object:
    """A filter as a JSON value."""
    if where is None:
        return None
    return {
        group: [[c.prop, c.operator, _value_json(c.value)] for c in getattr(where, group)]
        for group in ("every", "some")
    }


def _value_json(value: Comparable | tuple[Comparable, ...]) -> object:
    if isinstance(value, tuple):
        return [_value_json(each) for each in value]
    return {"at": value.isoformat()} if isinstance(value, datetime) else value


def _entries(arguments: Arguments) -> list[Entry]:
    return [
        Entry(_text(chunk_id), _text(terms), dict(properties), _text(copy))
        for chunk_id, terms, properties, copy in arguments["entries"]
    ]


def _ids(arguments: Arguments) -> list[str]:
    return [_text(chunk_id) for chunk_id in arguments["ids"]]


def _item(arguments: Arguments) -> PropertyTerm:
    mark, name, value = arguments["item"]
    return PropertyTerm(_text(mark), _text(name), value)


def _where(arguments: Arguments) -> Where | None:
    stated = arguments["where"]
    return None if stated is None else _stated(stated)


def _stated(stated: Any) -> Where:
    every, some = (tuple(_condition(*c) for c in stated[group]) for group in ("every", "some"))
    return Where(every, some)


def _condition(prop: Any, operator: Any, value: Any) -> Condition:
    if operator not in OPERATORS:
        raise ValueError(operator)
    listed = tuple(map(_value, value)) if isinstance(value, list) else _value(value)
    return Condition(_text(prop), operator, listed)


def _value(value: Any) -> Comparable:
    if isinstance(value, dict):
        return datetime.fromisoformat(value["at"])
    if not isinstance(value, str | int | float):
        raise TypeError(type(value).__name__)
    return cast(Comparable, value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return value


def _among(index: Keywords, arguments: Arguments) -> list[str]:
    return sorted(index.ids_among(_ids(arguments), _stated(arguments["where"])))


CALLS: Mapping[str, Callable[[Reservable, Arguments], object]] = {
    "create": lambda index, _: index.create(),
    "drop": lambda index, _: index.drop(),
    "upsert": lambda index, a: index.upsert(_entries(a)),
    "delete": lambda index, a: index.delete(_ids(a)),
    "compact": lambda index, _: index.compact(),
    "reserve": lambda index, a: index.reserve(
        _text(a["holder"]), float(a["seconds"]), again=bool(a.get("again"))
    ),
    "release": lambda index, a: index.release(_text(a["holder"])),
    "search": lambda index, a: index.search(_text(a["terms"]), int(a["limit"]), _where(a)),
    "ids": lambda index, a: index.ids(_where(a)),
    "ids_among": _among,
    "ids_having": lambda index, a: index.ids_having(_item(a)),
    "terms": lambda index, a: index.terms(_ids(a)),
    "copies": lambda index, a: index.copies(_ids(a)),
    "properties": lambda index, a: index.properties(_ids(a)),
    "values": lambda index, a: index.values(_text(a["name"])),
    "count": lambda index, a: index.count(_where(a)),
    "groups": lambda index, a: index.groups(_text(a["prop"]), _where(a)),
}
"""By the name of the method, what performs a call; its result is a JSON value."""
