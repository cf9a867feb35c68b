"""A retriever for Haystack 2 and 3: `pip install 'callslip[haystack]'`.

Haystack itself sends telemetry unless HAYSTACK_TELEMETRY_ENABLED is "False".
"""

from collections.abc import Mapping
from typing import Any, Literal

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.utils import Secret

from callslip.client import models
from callslip.plugins.conditions import Condition, Group, having, refused
from callslip.plugins.requests import TOP, SearchOptions, Server, metadata_of
from callslip.vocabulary import Fusion, Metric, ParentStrategy

_OPERATORS = {
    **{each: each for each in ("==", "!=", ">", ">=", "<", "<=", "in")},
    "not in": "not-in",
}
"""Haystack's operators, each with the server's."""


@component
class CallslipRetriever:
    """A pipeline component that retrieves passages of a collection.

    pipeline.add_component("retriever", CallslipRetriever(collection="main", top_k=3))
    """

    def __init__(
        self,
        collection: str,
        url: str | None = None,
        key: Secret | None = None,
        timeout: float = 120.0,
        top_k: int | None = TOP,
        filters: dict[str, Any] | None = None,
        tenant: str | None = None,
        alpha: float | None = None,
        fusion: Fusion | None = None,
        method: Metric | None = None,
        vector_name: str | None = None,
        horizon: float | None = None,
        operation_level: int | Literal["every"] | None = None,
        parent_strategy: ParentStrategy | None = None,
        having_all: dict[str, Any] | None = None,
        having_any: dict[str, Any] | None = None,
        ranking: dict[str, Any] | None = None,
        explain: bool | None = None,
        as_of: str | None = None,
    ) -> None:
        """`filters` are Haystack's; the rest are the parameters of a search (docs/filters.md).

        Without `url`, CALLSLIP_API__URL and CALLSLIP_API__KEY have the server's URL and its key.
        With `url` the key is a Secret, such as `Secret.from_env_var("CALLSLIP_API__KEY")`.
        """
        self.url, self.key, self.timeout = url, key, timeout
        self.filters = filters
        self._options = SearchOptions(
            collection=collection,
            top=top_k,
            tenant=tenant,
            alpha=alpha,
            fusion=fusion,
            method=method,
            vector_name=vector_name,
            horizon=horizon,
            operation_level=operation_level,
            parent_strategy=parent_strategy,
            having_all=having_all,
            having_any=having_any,
            ranking=ranking,
            explain=explain,
            as_of=as_of,
        )
        self._options_of(None, {})

    def to_dict(self) -> dict[str, Any]:
        """Serialize for a pipeline's YAML; Haystack refuses a key outside the environment."""
        options = self._options.arguments()
        serialized: dict[str, Any] = default_to_dict(
            self,
            url=self.url,
            key=self.key.to_dict() if self.key else None,
            timeout=self.timeout,
            top_k=options.pop("top"),
            filters=self.filters,
            **options,
        )
        return serialized

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "CallslipRetriever":
        """Deserialize from a pipeline's YAML."""
        made: CallslipRetriever = default_from_dict(cls, data)
        return made

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        tenant: str | None = None,
        as_of: str | None = None,
    ) -> dict[str, list[Document]]:
        """Retrieve passages for a question; arguments replace the component's own options."""
        options = self._options_of(filters, {"top": top_k, "tenant": tenant, "as_of": as_of})
        return {"documents": _documents(self._server().search(options, query))}

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        tenant: str | None = None,
        as_of: str | None = None,
    ) -> dict[str, list[Document]]:
        """The asynchronous form of `run`."""
        options = self._options_of(filters, {"top": top_k, "tenant": tenant, "as_of": as_of})
        return {"documents": _documents(await self._server().search_async(options, query))}

    def _server(self) -> Server:
        return Server(self.url, self.key.resolve_value() if self.key else None, self.timeout)

    def _options_of(
        self, filters: dict[str, Any] | None, overrides: Mapping[str, Any]
    ) -> SearchOptions:
        options = self._options.with_options(
            **{name: value for name, value in overrides.items() if value is not None}
        )
        conditions = self.filters if filters is None else filters
        return options.filtered(having(_tree(conditions))) if conditions else options


def _documents(response: models.SearchResponse) -> list[Document]:
    return [
        Document(
            id=hit.chunk_id, content=hit.text, meta=metadata_of(hit, response), score=hit.score
        )
        for hit in response.hits
    ]


def _tree(filters: Any) -> Condition | Group:
    """Parse a filter (https://docs.haystack.deepset.ai/docs/metadata-filtering has the format)."""
    if not isinstance(filters, Mapping) or "operator" not in filters:
        raise refused("a filter that is no comparison and no group")
    operator = filters["operator"]
    if "field" in filters:
        if operator not in _OPERATORS or "value" not in filters:
            raise refused(f"the operator {operator!r} of {filters['field']!r}")
        name = str(filters["field"]).removeprefix("meta.")
        return Condition(name, _OPERATORS[operator], filters["value"])
    if operator not in ("AND", "OR") or not isinstance(filters.get("conditions"), list):
        raise refused(f"the operator {operator!r}")
    return Group(operator == "OR", tuple(_tree(each) for each in filters["conditions"]))
