"""The searches of the framework retrievers: options, calls, metadata of passages."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from callslip.client import AsyncClient, Client, models
from callslip.errors import InvalidRequest
from callslip.plugins.conditions import Having
from callslip.vocabulary import WITHOUT_EXPLORATION, Fusion, Metric, ParentStrategy

TOP = 5
"""The default number of passages: few, since a language model reads them all."""


@dataclass(frozen=True)
class SearchOptions:
    """The options of a search (docs/filters.md) that a retriever sends with every question."""

    collection: str
    top: int | None = TOP
    tenant: str | None = None
    alpha: float | None = None
    fusion: Fusion | None = None
    method: Metric | None = None
    vector_name: str | None = None
    horizon: float | None = None
    operation_level: int | Literal["every"] | None = None
    parent_strategy: ParentStrategy | None = None
    having_all: Mapping[str, Any] | None = None
    having_any: Mapping[str, Any] | None = None
    ranking: Mapping[str, Any] | None = None
    explain: bool | None = None
    as_of: str | None = None

    def with_options(self, **overrides: Any) -> "SearchOptions":
        """Replace options for one question; raise InvalidRequest for an unknown option."""
        if unknown := overrides.keys() - {field.name for field in fields(self)}:
            raise InvalidRequest(
                f"a search has no option {min(unknown)!r}",
                hint=f"It has {', '.join(field.name for field in fields(self))}.",
            )
        return replace(self, **overrides)

    def filtered(self, having: Having) -> "SearchOptions":
        """Add a framework's conditions; InvalidRequest if there are conditions already."""
        if self.having_all or self.having_any:
            raise InvalidRequest(
                "filters and having_… are given", hint="Put all conditions into one of them."
            )
        return replace(self, having_all=having.having_all, having_any=having.having_any)

    def arguments(self) -> dict[str, Any]:
        """All options by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Server:
    """The address of a server; each search opens its own connection, so any thread may call it.

    `timeout` is in seconds. Both searches raise the errors of `Client.search`.
    """

    url: str | None
    key: str | None
    timeout: float

    def search(self, options: SearchOptions, query: str) -> models.SearchResponse:
        """Search for a question and return the whole response."""
        with Client(self.url, key=self.key, timeout=self.timeout) as client:
            return client.search(query=query, **_request(options))

    async def search_async(self, options: SearchOptions, query: str) -> models.SearchResponse:
        """The asynchronous form of `search`."""
        async with AsyncClient(self.url, key=self.key, timeout=self.timeout) as client:
            return await client.search(query=query, **_request(options))


def _request(options: SearchOptions) -> dict[str, Any]:
    """Keyword arguments for `Client.search`, without exploration unless the options ask for it."""
    ranking = {**WITHOUT_EXPLORATION, **(options.ranking or {})}
    return options.arguments() | {"ranking": ranking}


FOR_READERS = ("title", "heading", "filename")
"""The metadata of a passage that a language model reads in addition to its text."""


def metadata_of(hit: models.Hit, response: models.SearchResponse) -> dict[str, Any]:
    """All fields of a hit but its text; they replace properties of the same names."""
    metadata = {
        **hit.properties,
        "collection": response.collection,
        "document_id": hit.document_id,
        "chunk_id": hit.chunk_id,
        "title": hit.title,
        "filename": hit.filename,
        "source_url": hit.source_url,
        "section": hit.section,
        "heading": hit.heading,
        "span": hit.span.model_dump(),
        "lang": hit.lang,
        "level": hit.level,
        "parent_id": hit.parent_id,
        "rank": hit.rank,
        "score": hit.score,
        "legs": hit.legs.model_dump(),
        "trace_id": response.trace_id,
    }
    if hit.reasons is not None:
        metadata["reasons"] = hit.reasons.model_dump()
    return metadata
