"""The invokers of Genie Flow's package for Weaviate, for collections in any store.

`INVOKERS` maps the names to the classes. docs/compat-genie.md lists the differences from the
original.
"""

from collections.abc import Mapping

from callslip.compat.genie.delete import (
    WeaviateDeleteByFilenameInvoker,
    WeaviateDeleteByFilterInvoker,
    WeaviateDeleteChunkInvoker,
    WeaviateDeleteCollectionInvoker,
    WeaviateDeleteTenantInvoker,
)
from callslip.compat.genie.invoker import Invoker
from callslip.compat.genie.persist import WeaviateCreateTenantInvoker, WeaviatePersistInvoker
from callslip.compat.genie.search import (
    WeaviateSimilaritySearchInvoker,
    WeaviateSimilaritySearchRequestInvoker,
    WeaviateVectorSimilaritySearchInvoker,
)

INVOKERS: Mapping[str, type[Invoker]] = {
    invoker.__name__: invoker
    for invoker in (
        WeaviateSimilaritySearchInvoker,
        WeaviateVectorSimilaritySearchInvoker,
        WeaviateSimilaritySearchRequestInvoker,
        WeaviatePersistInvoker,
        WeaviateCreateTenantInvoker,
        WeaviateDeleteChunkInvoker,
        WeaviateDeleteByFilenameInvoker,
        WeaviateDeleteByFilterInvoker,
        WeaviateDeleteTenantInvoker,
        WeaviateDeleteCollectionInvoker,
    )
}

__all__ = [
    "INVOKERS",
    "Invoker",
    "WeaviateCreateTenantInvoker",
    "WeaviateDeleteByFilenameInvoker",
    "WeaviateDeleteByFilterInvoker",
    "WeaviateDeleteChunkInvoker",
    "WeaviateDeleteCollectionInvoker",
    "WeaviateDeleteTenantInvoker",
    "WeaviatePersistInvoker",
    "WeaviateSimilaritySearchInvoker",
    "WeaviateSimilaritySearchRequestInvoker",
    "WeaviateVectorSimilaritySearchInvoker",
]
