"""The embedder and the language model."""

from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from callslip.config.sections.section import Section

VARIABLES = {"EMBED_MODEL": "embedder.model", "EMBED_API_KEY": "embedder.api_key"}
"""Variables of the Weaviate stack, each with its setting; Callslip's own variables override
them."""


class EmbeddingModel(Section):
    """A model that computes vectors: the local one, or one of a server."""

    kind: Literal["e5", "openai", "none"] = Field(
        default="e5",
        description="e5: local; openai: any compatible server; none: keyword search only",
    )
    base_url: str | None = Field(default=None, description="URL of the OpenAI-compatible server")
    api_key: SecretStr | None = Field(
        default=None, description="key of the OpenAI-compatible server"
    )
    model: str | None = Field(
        default=None, description="model name at the OpenAI-compatible server"
    )
    query_model: str | None = Field(
        default=None, description="model name for queries, if the server has a separate one"
    )
    dimension: int | None = Field(
        default=None, ge=1, description="dimension of the server's vectors; unset: requested once"
    )
    max_tokens: int = Field(
        default=500, ge=32, description="the longest input of the server's model, in e5 tokens"
    )
    timeout_seconds: float = Field(
        default=30.0, gt=0, description="the longest time of one call of the server"
    )


class EmbedderSettings(EmbeddingModel):
    """The model that computes the vectors of texts."""

    api_key: SecretStr | None = Field(
        default=None, description="key of the OpenAI-compatible server; EMBED_API_KEY"
    )
    model: str | None = Field(
        default=None, description="model name at the OpenAI-compatible server; EMBED_MODEL"
    )
    device: Literal["cpu", "cuda"] = Field(
        default="cpu",
        description="where the local models compute; cuda: an NVIDIA GPU, by onnxruntime-gpu",
    )
    threads: int = Field(
        default=0,
        ge=0,
        description="threads of the local model; 0: the cores divided by ingest.concurrency, and in"
        " search and answer workers at least four, where there are as many",
    )
    cache_rows: int = Field(
        default=1_000_000, ge=0, description="vectors cached by text and model; 0: none"
    )


class PreviousEmbedderSettings(EmbedderSettings):
    """The embedder of collections that `callslip reindex` has not embedded anew yet.

    It answers their searches and embeds their new documents. Unset it after the last of them.
    """

    kind: Literal["e5", "openai", "none"] = Field(
        default="none", description="as embedder.kind; none: there is no previous embedder"
    )
    api_key: SecretStr | None = Field(
        default=None, description="key of the OpenAI-compatible server"
    )
    model: str | None = Field(
        default=None, description="model name at the OpenAI-compatible server"
    )


class FurtherEmbedderSettings(EmbeddingModel):
    """An embedder of named vectors; NAME has lower-case letters and digits, `-` or `_` in between.

    A collection names it for a vector that its chunks have beside that of `embedder`
    ([How do I](how-do-i.md#-search-by-several-embedders)): `CALLSLIP_EMBEDDERS__BGE__MODEL` is the
    model of the one named `bge`. `embedder.threads` and `embedder.cache_rows` apply to all.
    """

    kind: Literal["openai", "e5"] = Field(
        default="openai", description="openai: any compatible server; e5: local"
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.kind == "openai" and (self.base_url is None or self.model is None):
            raise ValueError("kind openai needs base_url and model")
        return self


class LlmSettings(Section):
    """A language model behind an OpenAI-compatible server: for answers and names (`confirm`)."""

    base_url: str | None = Field(
        default=None, description="URL of the server, mostly with /v1; unset: no language model"
    )
    api_key: SecretStr | None = Field(
        default=None, description="API key, if the server requires one"
    )
    model: str | None = Field(default=None, description="model name at the server")
    timeout_seconds: float = Field(default=30.0, gt=0, description="the longest time of one call")
    max_input_tokens: int = Field(
        default=6000, ge=100, description="the longest prompt; a token is counted as three bytes"
    )
    max_output_tokens: int = Field(default=800, ge=16, description="the longest reply")
    tokens_per_day: int = Field(
        default=2_000_000,
        ge=0,
        description="tokens for answers, per tenant or collection without tenants, from midnight"
        " to midnight UTC; 0: no limit",
    )
    input_price: float = Field(
        default=0.0, ge=0, description="price of a million input tokens, in any currency"
    )
    output_price: float = Field(default=0.0, ge=0, description="price of a million output tokens")

    @model_validator(mode="after")
    def _names_its_model(self) -> Self:
        if self.base_url is not None and self.model is None:
            raise ValueError("base_url is set without model")
        return self
