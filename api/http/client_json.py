"""Reads and writes the JSON of requests and responses: no name occurs twice in an object."""

import json
from typing import Any

from flask.json.provider import DefaultJSONProvider

from callslip.errors import InvalidRequest
from callslip.messages.values import RepeatedName, unique


class ClientJson(DefaultJSONProvider):
    """JSON of an app: bodies with a repeated name are refused, text is written as it is."""

    ensure_ascii = False
    sort_keys = False

    def loads(self, s: str | bytes, **kwargs: Any) -> Any:
        """Read JSON.

        Raises InvalidRequest if a name occurs twice in an object, or a number has more digits than
        Python converts (4,300), and another ValueError for a text that is not JSON.
        """
        try:
            return json.loads(s, object_pairs_hook=unique, **kwargs)
        except RepeatedName as error:
            raise InvalidRequest(f"in an object of the JSON {error}") from None
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise
        except ValueError:
            raise InvalidRequest("the JSON has a number with too many digits") from None
