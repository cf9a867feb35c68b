"""Settings of a search and of what moves its hits: facets, memory, a reranker, diversity."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from config.section import Section


class SearchSettings(Section):
    """The search worker and its ranking."""

    threads: int = Field(
        default=2, ge=1, description="searches answered at the same time by one worker"
    )
    timeout_seconds: float = Field(
        default=10.0, gt=0, description="the desk waits this long for an answer"
    )
    max_backlog: int = Field(
        default=64, ge=1, description="searches waiting before the desk answers 503"
    )
    max_query_chars: int = Field(default=4000, ge=1, description="longest query")
    top: int | None = Field(
        default=None,
        ge=1,
        description="hits when the request does not say; unset: all, up to max_top",
    )
    max_top: int = Field(default=200, ge=1, description="most hits that a request may ask for")
    pool: int = Field(default=150, ge=1, le=500, description="candidates taken from each leg")
    fusion: Literal["calibrated", "weighted", "rrf", "native"] = Field(
        default="calibrated",
        description="how the legs are merged: by scores held against the collection, by scores"
        " alone, by reciprocal rank, or as the store does",
    )
    alpha: float = Field(
        default=0.4, ge=0, le=1, description="weight of the vector leg; 0 keyword, 1 vector"
    )
    rrf_k: int = Field(default=60, ge=1, description="constant of reciprocal rank fusion")
    proximity: float = Field(
        default=0.25,
        ge=0,
        le=1,
        description="weight of words that follow each other as in the question, beside the keyword"
        " leg; of calibrated fusion",
    )
    read: int = Field(
        default=40, ge=0, le=200, description="candidates whose words are looked at for that"
    )
    narrow: bool = Field(
        default=True,
        description="search again among the documents of the facets that a question names, where"
        " more chunks match than candidates are taken",
    )
    query_cache: int = Field(
        default=2000, ge=0, description="vectors of questions kept by each search worker; 0: none"
    )
    result_cache: int = Field(
        default=500,
        ge=0,
        description="questions whose candidates each search worker keeps; 0: none",
    )
    result_cache_seconds: float = Field(
        default=60.0, gt=0, description="how long they are kept while nothing changes"
    )
    hotset: int = Field(
        default=0,
        ge=0,
        le=1000,
        description="passages that helped most of late, of each collection and tenant, that each"
        " search worker keeps: where a question is nearly one that they have answered, they alone"
        " are the hits and the stores are not searched, so there may be fewer than `top`; 0: none",
    )
    hotset_similarity: float = Field(
        default=0.97,
        ge=0,
        le=1,
        description="cosine of a question to those that a passage has answered, from which it is"
        " nearly one of them; measured with the local embedder",
    )
    level: Literal["passages", "every"] = Field(
        default="passages",
        description="what is searched where `operation_level` is left out: passages, or sections"
        " and documents too",
    )

    as_of: Literal["now", "any"] = Field(
        default="now",
        description="where neither the request nor the question names a time: only what is in"
        " force now, or all versions",
    )

    @model_validator(mode="after")
    def _top_fits(self) -> Self:
        if self.top is not None and self.top > self.max_top:
            raise ValueError(f"top ({self.top}) is above max_top ({self.max_top})")
        return self


class FacetsSettings(Section):
    """Facet-value vectors, and the soft prior that they give."""

    names: str = Field(
        default="doc_type,section,jurisdiction,lang",
        description="properties whose values have vectors",
    )
    weight: float = Field(
        default=0.2, ge=0, le=1, description="of the prior, at most; 0: no prior at all"
    )
    top_per_facet: int = Field(
        default=2, ge=1, le=20, description="values of a facet that a question may favour"
    )
    max_values: int = Field(
        default=500, ge=1, description="values of a facet that have vectors, the most frequent"
    )
    rebuild_hours: float = Field(
        default=1.0, ge=0, description="how often vectors of changed values are made anew; 0: never"
    )

    @property
    def facets(self) -> tuple[str, ...]:
        """The names, apart."""
        return tuple(name for part in self.names.split(",") if (name := part.strip()))


class MemorySettings(Section):
    """What is remembered of chunks that helped."""

    weight: float = Field(
        default=0.15, ge=0, le=1, description="of the bonus, at most; 0: no bonus at all"
    )
    half_life_weeks: float = Field(
        default=6.0, ge=1, le=52, description="after which a win counts half"
    )
    exploration: Literal["epsilon", "thompson", "off"] = Field(
        default="epsilon", description="how chunks that were never tried are given a chance"
    )
    exploration_ratio: float = Field(
        default=0.15, ge=0, le=1, description="of searches in which one is"
    )
    record: bool = Field(
        default=True,
        description="searches are recorded, as ids and numbers, so that feedback can name them",
    )
    max_searches: int = Field(
        default=50_000, ge=1, description="recorded searches that are kept, the newest"
    )
    feedback_per_hour: int = Field(
        default=300,
        ge=1,
        description="most feedback that is taken of one user in a collection; all without a name"
        " are one user",
    )


class TracesSettings(Section):
    """What is kept of each search so that it can be explained afterwards."""

    share: float = Field(
        default=1.0, ge=0, le=1, description="of searches whose trace is kept; 0: none"
    )
    keep_hours: float = Field(default=72.0, gt=0, description="after which a trace is forgotten")
    max_rows: int = Field(default=20_000, ge=1, description="traces that are kept, the newest")


class RerankSettings(Section):
    """What reads the best candidates again."""

    provider: Literal["none", "maxsim", "onnx", "api"] = Field(
        default="none",
        description="none; maxsim: the local embedder's token vectors; onnx: a cross-encoder in a"
        " file; api: a `/rerank` server",
    )
    top: int = Field(default=40, ge=1, le=200, description="candidates that are read")
    weight: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="of what the reranker says, against the fused score; 1: its order alone;"
        " unset: 0.2 for maxsim, 0.5 for the others",
    )
    timeout_seconds: float = Field(
        default=2.0, gt=0, description="after this the fused order stands, and the answer says so"
    )
    mmr_lambda: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="relevance against novelty; 1: no diversification",
    )
    onnx_file: Path | None = Field(default=None, description="the cross-encoder's model")
    tokenizer_file: Path | None = Field(default=None, description="its `tokenizer.json`")
    max_tokens: int = Field(
        default=512, ge=32, description="of question and passage together, read by onnx_file"
    )
    cache_rows: int = Field(
        default=5000,
        ge=0,
        description="passages whose token vectors are kept for maxsim, 60 to 200 KB each",
    )
    url: str | None = Field(default=None, description="of the server, with its path")
    protocol: Literal["cohere", "tei"] = Field(
        default="cohere",
        description="of the server; cohere: also Jina's and vLLM's; tei: text-embeddings-inference",
    )
    api_key: SecretStr | None = Field(default=None, description="where the server asks for one")
    model: str | None = Field(default=None, description="model name at the server")

    @property
    def blend_weight(self) -> float:
        """`weight`; where that is unset, the one that was measured for maxsim, or the middle."""
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
