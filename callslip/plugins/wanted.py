"""What a retriever asks the desk for, and what a passage is beside its text."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from callslip.client import AsyncClient, Client, models
from callslip.client.words import Fusion, Metric, ParentStrategy
from callslip.errors import InvalidRequest
from callslip.plugins.conditions import Having

TOP = 5
"""Passages, where nothing else is said: a language model reads them all."""


@dataclass(frozen=True)
class Wanted:
    """The options of a search (docs/filters.md) that hold for every question."""

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

    def but(self, **given: Any) -> "Wanted":
        """With these for one question; InvalidRequest where there is no such option."""
        if unknown := given.keys() - {field.name for field in fields(self)}:
            raise InvalidRequest(
                f"a search has no option {min(unknown)!r}",
                hint=f"It has {', '.join(field.name for field in fields(self))}.",
            )
        return replace(self, **given)

    def filtered(self, having: Having) -> "Wanted":
        """With the conditions of a framework; InvalidRequest where both kinds are given."""
        if self.having_all or self.having_any:
            raise InvalidRequest("filters and having_… are given", hint="Say all in one of them.")
        return replace(self, having_all=having.having_all, having_any=having.having_any)

    def arguments(self) -> dict[str, Any]:
        """For the client's `search`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Desk:
    """Where to ask; each search makes connections of its own, so that any thread or loop may."""

    url: str | None
    key: str | None
    timeout: float

    def search(self, wanted: Wanted, query: str) -> models.SearchResponse:
        """The passages for a question."""
        with Client(self.url, key=self.key, timeout=self.timeout) as client:
            return client.search(query=query, **wanted.arguments())

    async def search_async(self, wanted: Wanted, query: str) -> models.SearchResponse:
        """The same, awaited."""
        async with AsyncClient(self.url, key=self.key, timeout=self.timeout) as client:
            return await client.search(query=query, **wanted.arguments())


FOR_READERS = ("title", "heading", "filename")
"""What of a passage is worth telling a language model."""


def metadata_of(hit: models.Hit, found: models.SearchResponse) -> dict[str, Any]:
    """All that is known of a passage but its text; its own properties give way to the desk's."""
    told = {
        **hit.properties,
        "collection": found.collection,
        "document_id": hit.document_id,
        "chunk_id": hit.chunk_id,
        "title": hit.title,
        "filename": hit.filename,
        "section": hit.section,
        "heading": hit.heading,
        "span": hit.span.model_dump(),
        "lang": hit.lang,
        "level": hit.level,
        "parent_id": hit.parent_id,
        "rank": hit.rank,
        "score": hit.score,
        "legs": hit.legs.model_dump(),
        "trace_id": found.trace_id,
    }
    if hit.reasons is not None:
        told["reasons"] = hit.reasons.model_dump()
    return told
