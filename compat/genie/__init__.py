"""The invokers of Genie Flow's package for Weaviate, over whichever store a collection is in.

`INVOKERS` names them. docs/compat-genie.md says what differs from the original.
"""

from collections.abc import Mapping

from compat.genie.delete import (
    WeaviateDeleteByFilenameInvoker,
    WeaviateDeleteByFilterInvoker,
    WeaviateDeleteChunkInvoker,
    WeaviateDeleteCollectionInvoker,
    WeaviateDeleteTenantInvoker,
)
from compat.genie.invoker import Invoker
from compat.genie.persist import WeaviateCreateTenantInvoker, WeaviatePersistInvoker
from compat.genie.search import (
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
