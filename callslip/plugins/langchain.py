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
from callslip.client.words import Fusion, Metric, ParentStrategy
from callslip.plugins.wanted import TOP, Desk, Wanted, metadata_of


class CallslipRetriever(BaseRetriever):
    """Passages of a collection; every option may also be given to `invoke`, for one question.

    retriever = CallslipRetriever(collection="main", k=3)
    retriever.invoke("how long is parental leave?", as_of="2020-03-31")
    """

    model_config = ConfigDict(extra="forbid")

    collection: str
    url: str | None = None
    """Of the desk; without it CALLSLIP_API__URL and CALLSLIP_API__KEY say where and the key."""
    key: SecretStr | None = None
    timeout: float = 120.0
    k: int | None = TOP
    """Most passages."""
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
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **given: Any
    ) -> list[Document]:
        return _documents(self._desk().search(self._wanted(given), query))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **given: Any
    ) -> list[Document]:
        return _documents(await self._desk().search_async(self._wanted(given), query))

    def _desk(self) -> Desk:
        key = self.key.get_secret_value() if self.key else None
        return Desk(self.url, key, self.timeout)

    def _wanted(self, given: Mapping[str, Any]) -> Wanted:
        wanted = Wanted(
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
        return wanted.but(**{"top" if name == "k" else name: at for name, at in given.items()})


def _documents(found: models.SearchResponse) -> list[Document]:
    """`source`, which chains that cite ask for, is the file's name where nothing else is."""
    return [
        Document(
            id=hit.chunk_id,
            page_content=hit.text,
            metadata={"source": hit.filename} | metadata_of(hit, found),
        )
        for hit in found.hits
    ]
