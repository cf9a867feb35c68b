"""Reads and writes the JSON of requests and responses: no name occurs twice in an object."""

import json
from typing import Any

from flask.json.provider import DefaultJSONProvider

from callslip.errors import InvalidRequest


class ClientJson(DefaultJSONProvider):
    """JSON of an app: bodies with a repeated name are refused, text is written as it is."""

    ensure_ascii = False
    sort_keys = False

    def loads(self, s: str | bytes, **kwargs: Any) -> Any:
        """Read JSON; raise InvalidRequest if a name occurs twice in an object."""
        return json.loads(s, object_pairs_hook=unique, **kwargs)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these names and values; raises InvalidRequest if a name occurs twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidRequest(f"the JSON has {twice[:100]!r} twice in one object")
    return made
