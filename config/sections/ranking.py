"""Settings of searches and their ranking: facets, memory, reranker, diversity, traces."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from callslip.config.sections.section import Section


class SearchSettings(Section):
    """The search worker and its ranking."""

    threads: int = Field(
        default=2, ge=1, description="searches that one worker runs at the same time"
    )
    timeout_seconds: float = Field(
        default=10.0, gt=0, description="how long the server waits for the result of a search"
    )
    max_backlog: int = Field(
        default=64, ge=1, description="waiting searches; beyond this number the server responds 503"
    )
    max_query_chars: int = Field(default=4000, ge=1, description="the longest query")
    top: int | None = Field(
        default=None,
        ge=1,
        description="hits of a request without `top`; unset: all, up to max_top",
    )
    max_top: int = Field(default=200, ge=1, description="the most hits of a request")
    pool: int = Field(default=150, ge=1, le=500, description="candidates from each retriever")
    fusion: Literal["calibrated", "weighted", "rrf", "native"] = Field(
        default="calibrated",
        description="how retrievers are merged: by scores calibrated per collection, by scores"
        " alone, by reciprocal rank, or by the store",
    )
    alpha: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="weight of the vector retriever; 0 keyword, 1 vector; unset: chosen for each"
        " question",
    )
    rrf_k: int = Field(default=60, ge=1, description="constant of reciprocal rank fusion")
    proximity: float = Field(
        default=0.25,
        ge=0,
        le=1,
        description="weight of words that follow each other as in the question, added to the"
        " keyword retriever in calibrated fusion",
    )
    read: int = Field(
        default=40, ge=0, le=200, description="candidates whose text is read for proximity"
    )
    narrow: bool = Field(
        default=True,
        description="search again in the documents with the facet values that a question names, if"
        " more chunks match than there are candidates",
    )
    query_cache: int = Field(
        default=2000, ge=0, description="question vectors that each search worker caches; 0: none"
    )
    result_cache: int = Field(
        default=500,
        ge=0,
        description="questions whose candidates each search worker caches; 0: none",
    )
    result_cache_seconds: float = Field(
        default=60.0,
        gt=0,
        description="how long candidates are cached if the collection does not change",
    )
    hotset: int = Field(
        default=0,
        ge=0,
        le=1000,
        description="most helpful passages per collection and tenant that each"
        " search worker caches: if a question is nearly one that they have answered, only they"
        " are the hits and the stores are not searched, so there may be fewer than `top`; 0: none",
    )
    hotset_similarity: float = Field(
        default=0.97,
        ge=0,
        le=1,
        description="least cosine of a question to the mean of the questions that a passage has"
        " answered, for the hotset to return it; measured with the local embedder",
    )
    level: Literal["passages", "every"] = Field(
        default="passages",
        description="what a search without `operation_level` covers: passages, or sections"
        " and documents too",
    )

    as_of: Literal["now", "any"] = Field(
        default="now",
        description="if neither the request nor the question names a time: only passages in"
        " force now, or all versions",
    )

    @model_validator(mode="after")
    def _top_fits(self) -> Self:
        if self.top is not None and self.top > self.max_top:
            raise ValueError(f"top ({self.top}) is above max_top ({self.max_top})")
        return self


class FacetsSettings(Section):
    """Vectors of facet values, and the soft prior that is computed with them."""

    names: str = Field(
        default="doc_type,section,jurisdiction,lang",
        description="properties whose values have vectors",
    )
    weight: float = Field(default=0.2, ge=0, le=1, description="the largest prior; 0: no prior")
    top_per_facet: int = Field(
        default=2, ge=1, le=20, description="the most values of a facet that a question can favour"
    )
    max_values: int = Field(
        default=500,
        ge=1,
        description="the most values of a facet with vectors: the most frequent ones",
    )
    rebuild_hours: float = Field(
        default=1.0,
        ge=0,
        description="how often vectors of changed values are recomputed; 0: never",
    )

    @property
    def facets(self) -> tuple[str, ...]:
        """The names as a tuple."""
        return tuple(name for part in self.names.split(",") if (name := part.strip()))

    def of(self, more: Iterable[str]) -> tuple[str, ...]:
        """The facets of a collection that has `more` of its own."""
        return tuple(dict.fromkeys((*self.facets, *more)))


class ProposalsSettings(Section):
    """Better weights and further facets, which the scheduler proposes for each collection."""

    tune_days: float = Field(
        default=7.0, ge=0, description="how often weights are fitted on outcomes; 0: never"
    )
    discover_days: float = Field(
        default=30.0, ge=0, description="how often further facets are looked for; 0: never"
    )
    run_minutes: float = Field(
        default=15.0, gt=0, le=600, description="the longest time of one run"
    )


class MemorySettings(Section):
    """The statistics of chunks that helped."""

    weight: float = Field(default=0.15, ge=0, le=1, description="the largest bonus; 0: no bonus")
    half_life_weeks: float = Field(
        default=6.0, ge=1, le=52, description="time after which a win counts half"
    )
    exploration: Literal["epsilon", "thompson", "off"] = Field(
        default="epsilon", description="how a search that explores tries chunks with few outcomes"
    )
    exploration_ratio: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="share of the searches of five or more hits that explore, below rank 3;"
        " a collection's ranking parameters can set it",
    )
    record: bool = Field(
        default=True,
        description="record searches, as ids and numbers, so that feedback can refer to them",
    )
    max_searches: int = Field(
        default=50_000, ge=1, description="the most recorded searches; the newest are stored"
    )
    feedback_per_hour: int = Field(
        default=300,
        ge=1,
        description="the most feedback of one user in a collection; all users without a name"
        " count as one",
    )


class TracesSettings(Section):
    """The stored traces of searches, which explain a search afterwards."""

    share: float = Field(
        default=1.0, ge=0, le=1, description="share of searches whose trace is stored; 0: none"
    )
    keep_hours: float = Field(default=72.0, gt=0, description="time after which a trace is deleted")
    max_rows: int = Field(
        default=20_000, ge=1, description="the most stored traces; the newest are stored"
    )


class RerankSettings(Section):
    """The reranker, which reads the best candidates."""

    provider: Literal["none", "maxsim", "onnx", "api"] = Field(
        default="none",
        description="none: no reranker; maxsim: the local embedder's token vectors; onnx: a"
        " cross-encoder in a file; api: a `/rerank` server",
    )
    top: int = Field(default=40, ge=1, le=200, description="candidates that the reranker reads")
    weight: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="weight of the reranker's score against the fused score; 1: its order alone;"
        " unset: 0.2 for maxsim, 0.5 for the others",
    )
    timeout_seconds: float = Field(
        default=2.0,
        gt=0,
        description="time after which the fused order is used and the response says so",
    )
    mmr_lambda: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="relevance against novelty; 1: no diversification",
    )
    onnx_file: Path | None = Field(default=None, description="the cross-encoder's model")
    tokenizer_file: Path | None = Field(
        default=None, description="`tokenizer.json` of the cross-encoder"
    )
    max_tokens: int = Field(
        default=512, ge=32, description="longest input of onnx_file, question and passage together"
    )
    cache_rows: int = Field(
        default=5000,
        ge=0,
        description="passages whose token vectors are cached for maxsim, 60 to 200 KB each",
    )
    url: str | None = Field(default=None, description="URL of the server, with its path")
    protocol: Literal["cohere", "tei"] = Field(
        default="cohere",
        description="protocol; cohere: also Jina's and vLLM's; tei: text-embeddings-inference",
    )
    api_key: SecretStr | None = Field(
        default=None, description="API key, if the server requires one"
    )
    model: str | None = Field(default=None, description="model name at the server")

    @property
    def blend_weight(self) -> float:
        """`weight`, or if it is unset the measured one for maxsim, or the middle for the others."""
        if self.weight is not None:
            return self.weight
        return 0.2 if self.provider == "maxsim" else 0.5

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        if self.provider == "onnx" and (self.onnx_file is None or self.tokenizer_file is None):
            raise ValueError("provider is onnx without onnx_file and tokenizer_file")
        if self.provider == "api" and self.url is None:
            raise ValueError("provider is api without url")
        return self
