"""The search form of the page, and the search or question that it describes."""

from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from werkzeug.datastructures import MultiDict

from callslip.agent.messages import AnswerRequest
from callslip.api.http.problems import message_of
from callslip.errors import InvalidFilter, InvalidRequest
from callslip.retrieval.messages import SearchRequest
from callslip.stores.properties.filters import OPERATORS, typed

SHOWN = 10
"""The number of hits if the form has none."""

LABELS = {
    "query": "Question",
    "question": "Question",
    "tenant": "Tenant",
    "alpha": "Weight",
    "fusion": "Fusion",
    "as_of": "In force on",
}
"""The labels of the form's fields, by the names that requests have for them."""

Message = TypeVar("Message", bound=BaseModel)


@dataclass(frozen=True)
class Row:
    """One line of the filter as the user typed it."""

    key: str = ""
    operator: str = "=="
    value: str = ""


@dataclass(frozen=True)
class SearchForm:
    """The fields as the user typed them; for an empty field the settings apply."""

    query: str
    alpha: str
    fusion: str
    top: str
    tenant: str
    as_of: str
    rows: tuple[Row, ...]
    ask: bool
    thread: str

    @classmethod
    def of(cls, args: MultiDict[str, str]) -> "SearchForm":
        """Read the form from a query string; lines of the filter without a key are left out."""
        lines = zip(
            args.getlist("key"), args.getlist("operator"), args.getlist("value"), strict=False
        )
        return cls(
            query=args.get("q", ""),
            alpha=args.get("alpha", ""),
            fusion=args.get("fusion", ""),
            top=args.get("top", ""),
            tenant=args.get("tenant", ""),
            as_of=args.get("as_of", "").strip(),
            rows=tuple(Row(k.strip(), o, v.strip()) for k, o, v in lines if k.strip()),
            ask="ask" in args,
            thread=args.get("thread", ""),
        )

    def request(self, collection: str) -> SearchRequest:
        """Make the search; InvalidRequest and InvalidFilter name the invalid field."""
        fields = {
            "query": self.query,
            "alpha": self.alpha or None,
            "fusion": self.fusion or None,
            "top": self.top or SHOWN,
            "count_not_in_force": True,
        }
        return _valid(SearchRequest, fields | self._where(collection))

    def question(self, collection: str) -> AnswerRequest:
        """Make the question to the agent; errors as in `request`."""
        fields = {"question": self.query, "thread_id": self.thread or None}
        return _valid(AnswerRequest, fields | self._where(collection))

    def _where(self, collection: str) -> dict[str, object]:
        return {
            "collection": collection,
            "tenant": self.tenant or None,
            "as_of": self.as_of or None,
            "having_all": _conditions(self.rows) or None,
        }


def _valid(kind: type[Message], fields: dict[str, object]) -> Message:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        errors = (
            f"{LABELS.get(str(e['loc'][0]), e['loc'][0])}: {message_of(e)}"
            for e in error.errors(include_input=False)
        )
        raise InvalidRequest("; ".join(errors), hint="Correct it in the form.") from None


def _conditions(rows: tuple[Row, ...]) -> dict[str, object]:
    conditions: dict[str, object] = {}
    for row in rows:
        if row.operator not in OPERATORS:
            raise InvalidFilter(f"{row.key!r} has an unknown operator {row.operator!r}.")
        key = f"{row.key} {row.operator}"
        if key in conditions:
            raise InvalidFilter(
                f"{key!r} stands in two lines.", hint="Use `in` with several values, or one line."
            )
        conditions[key] = typed(row.value, row.operator)
    return conditions
