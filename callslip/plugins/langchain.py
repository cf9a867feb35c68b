"""A retriever for LangChain: `pip install 'callslip[langchain]'`."""

from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, SecretStr

from callslip.client import models
from callslip.plugins.requests import TOP, SearchOptions, Server, metadata_of
from callslip.vocabulary import Fusion, Metric, ParentStrategy


class CallslipRetriever(BaseRetriever):
    """Retrieves passages of a collection; `invoke` also takes every option, for one question.

    retriever = CallslipRetriever(collection="main", k=3)
    retriever.invoke("how long is parental leave?", as_of="2020-03-31")
    """

    model_config = ConfigDict(extra="forbid")

    collection: str
    url: str | None = None
    """The server's URL; by default URL and key are CALLSLIP_API__URL and CALLSLIP_API__KEY."""
    key: SecretStr | None = None
    timeout: float = 120.0
    k: int | None = TOP
    """The maximum number of passages."""
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

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **overrides: Any
    ) -> list[Document]:
        return _documents(self._server().search(self._options(overrides), query))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **overrides: Any
    ) -> list[Document]:
        return _documents(await self._server().search_async(self._options(overrides), query))

    def _server(self) -> Server:
        key = self.key.get_secret_value() if self.key else None
        return Server(self.url, key, self.timeout)

    def _options(self, overrides: Mapping[str, Any]) -> SearchOptions:
        options = SearchOptions(
            collection=self.collection,
            top=self.k,
            tenant=self.tenant,
            alpha=self.alpha,
            fusion=self.fusion,
            method=self.method,
            vector_name=self.vector_name,
            horizon=self.horizon,
            operation_level=self.operation_level,
            parent_strategy=self.parent_strategy,
            having_all=self.having_all,
            having_any=self.having_any,
            ranking=self.ranking,
            explain=self.explain,
            as_of=self.as_of,
        )
        return options.with_options(
            **{"top" if name == "k" else name: value for name, value in overrides.items()}
        )


def _documents(response: models.SearchResponse) -> list[Document]:
    """Convert hits; `source`, which citing chains read, is that property, or an address or name."""
    return [
        Document(
            id=hit.chunk_id,
            page_content=hit.text,
            metadata={"source": hit.source_url or hit.filename} | metadata_of(hit, response),
        )
        for hit in response.hits
    ]
