"""An embedder on a server with OpenAI's embeddings protocol."""

import json
from collections.abc import Iterator, Sequence

import numpy as np
import openai

from callslip.config.settings import EmbeddingModel
from callslip.errors import CallslipError, EmbedderDown, InvalidRequest, SettingsError
from callslip.models.e5.tokens import Tokenizer, is_blank, well_formed
from callslip.models.embedders.contract import Vectors
from callslip.models.http.openai_protocol import client, translated
from callslip.per_process import PerProcess

BATCH_TEXTS = 32
"""The most texts of one request: the default limit of text-embeddings-inference."""

BATCH_TOKENS = 4_000
"""The most tokens of one request, counted by e5's tokenizer.

A server on two busy cores reads 500 to 1,000 tokens per second, and must answer within
`embedder.timeout_seconds`.
"""


class OpenAIEmbedder:
    """An `Embedder` that calls the server at `embedder.base_url` and never retries by itself.

    Raises EmbedderDown if the server does not answer or is busy; InvalidRequest if the server
    refuses a text; SettingsError if the server refuses the key, the model or the address, or if its
    response does not fit the protocol or the settings. Connects when first used, once per process.

    Of a text longer than `max_tokens` only the first `max_tokens` are sent, because most servers
    refuse a longer text.
    """

    lexical_only = False

    def __init__(
        self, settings: EmbeddingModel, tokenizer: Tokenizer, section: str = "embedder"
    ) -> None:
        """`tokenizer` counts the tokens of texts, for their limit and for batches.

        `section` is the key of the settings, for errors. Raises SettingsError without `base_url`
        and `model`.
        """
        if settings.base_url is None or settings.model is None:
            raise SettingsError(f"{section}.kind openai needs {section}.base_url and model")
        self._settings, self._section = settings, section
        self._model: str = settings.model
        self._tokenizer = tokenizer
        self._client = PerProcess(lambda: client(settings))
        self._dimension = settings.dimension

    @property
    def model(self) -> str:
        """The name of the model for passages, with the prefix `openai/`."""
        return f"openai/{self._model}"

    @property
    def dimension(self) -> int:
        """`embedder.dimension`, or the length of a first vector that the server returns."""
        if self._dimension is None:
            self._dimension = self._request(self._model, ["dimension"]).shape[1]
        return self._dimension

    @property
    def max_tokens(self) -> int:
        """`embedder.max_tokens`."""
        return self._settings.max_tokens

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages: shape (len(texts), dimension), rows of length 1."""
        fitted = [self._fit(text) for text in texts]
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for batch in _batches([tokens for _, tokens in fitted]):
            vectors[batch] = self._embed(self._model, [fitted[i][0] for i in batch])
        return vectors

    def query(self, text: str) -> Vectors:
        """Embed a query: shape (dimension,), length 1."""
        fitted, _ = self._fit(text)
        vector: Vectors = self._embed(self._settings.query_model or self._model, [fitted])[0]
        return vector

    def _fit(self, text: str) -> tuple[str, int]:
        """Return the beginning of the text that the model reads, and its number of tokens."""
        offsets = self._tokenizer.offsets(text)
        if is_blank(text):  # some servers refuse it, others return a meaningless vector
            raise InvalidRequest("a text to embed is blank")
        if len(offsets) <= self.max_tokens:
            return well_formed(text), len(offsets)
        return well_formed(text[: offsets[self.max_tokens]]), self.max_tokens

    def _embed(self, model: str, texts: Sequence[str]) -> Vectors:
        vectors = self._request(model, texts)
        if vectors.shape[1] != self.dimension:
            raise SettingsError(
                f"the embedding server answers vectors of {vectors.shape[1]} dimensions,"
                f" expected {self.dimension}",
                hint=f"Set {self._section}.dimension to what {self._section}.model gives; a"
                " collection keeps its.",
            )
        return vectors

    def _request(self, model: str, texts: Sequence[str]) -> Vectors:
        try:
            response = self._client.get().embeddings.with_raw_response.create(
                model=model, input=list(texts), encoding_format="float"
            )
        except openai.APIError as error:
            # Not chained: the server's message may quote the text.
            raise _translate(error, self._settings, self._section) from None
        return _read(response.text, len(texts), self._section)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Iterate over the requests: for each, the indices of its texts in order.

    `lengths` are in tokens.
    """
    batch: list[int] = []
    for i, length in enumerate(lengths):
        full = len(batch) == BATCH_TEXTS
        if batch and (full or sum(lengths[j] for j in batch) + length > BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _translate(error: openai.APIError, settings: EmbeddingModel, section: str) -> CallslipError:
    error_for_caller = translated(
        error, settings, what="embedding server", section=section, down=EmbedderDown
    )
    if type(error_for_caller) is InvalidRequest:
        error_for_caller.advice = f"Its model may read less than {section}.max_tokens says."
    return error_for_caller


def _read(body: str, count: int, section: str) -> Vectors:
    """Return the vectors of a response in the order of the texts, scaled to length 1."""
    try:
        rows = sorted(json.loads(body)["data"], key=lambda row: row["index"])
        vectors = np.array([row["embedding"] for row in rows], np.float32).reshape(count, -1)
        in_order = [row["index"] for row in rows] == list(range(count))
    except (KeyError, TypeError, ValueError):
        in_order = False
    if not in_order:
        raise SettingsError(
            "the embedding server's answer does not hold one vector for each text",
            hint=f"{section}.base_url must be that of an OpenAI-compatible server, mostly with"
            " /v1.",
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.all(np.isfinite(lengths) & (lengths > 0)):
        raise SettingsError(
            "the embedding server answered a vector that is not finite or is zero",
            hint="Its model does not work; try it in another precision, or take another model.",
        )
    unit: Vectors = vectors / lengths
    return unit
