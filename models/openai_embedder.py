"""An embedder behind any server that speaks OpenAI's embeddings protocol."""

import json
from collections.abc import Iterator, Sequence

import numpy as np
import openai

from callslip.errors import CallslipError, EmbedderDown, InvalidRequest, SettingsError
from config.settings import EmbedderSettings
from models.embedder import Vectors
from models.openai_wire import client, translated
from models.per_process import PerProcess
from models.tokens import Tokenizer, is_blank, well_formed

BATCH_TEXTS = 32
"""Of one request: the most that text-embeddings-inference takes unless it is told otherwise."""

BATCH_TOKENS = 4_000
"""Of one request, in e5 tokens: a server on two busy cores reads 500 to 1,000 in a second, and has
to answer within `embedder.timeout_seconds`."""


class OpenAIEmbedder:
    """An `Embedder` that calls the server at `embedder.base_url`. It never tries again by itself.

    Raises EmbedderDown when the server does not answer or is busy; InvalidRequest when it refuses
    a text; SettingsError when it refuses the key, the model or the address, or when its answer is
    not what protocol and settings say. Connects when first used, once per process.

    Of a text longer than `max_tokens` only so much of its beginning is sent: most servers refuse a
    text that is too long.
    """

    lexical_only = False

    def __init__(self, settings: EmbedderSettings, tokenizer: Tokenizer) -> None:
        """`tokenizer` measures batches. Raises SettingsError without `base_url` and `model`."""
        if settings.base_url is None or settings.model is None:
            raise SettingsError("embedder.kind openai needs embedder.base_url and embedder.model")
        self._settings = settings
        self._model: str = settings.model
        self._tokenizer = tokenizer
        self._client = PerProcess(lambda: client(settings))
        self._dimension = settings.dimension

    @property
    def model(self) -> str:
        """The name of the model for passages, behind `openai/`."""
        return f"openai/{self._model}"

    @property
    def dimension(self) -> int:
        """`embedder.dimension`; where that is not set the server is asked, once."""
        if self._dimension is None:
            self._dimension = self._request(self._model, ["dimension"]).shape[1]
        return self._dimension

    @property
    def max_tokens(self) -> int:
        """`embedder.max_tokens`."""
        return self._settings.max_tokens

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Embed what is stored: shape (len(texts), dimension), rows of length 1."""
        fitted = [self._fit(text) for text in texts]
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for batch in _batches([tokens for _, tokens in fitted]):
            vectors[batch] = self._embed(self._model, [fitted[i][0] for i in batch])
        return vectors

    def query(self, text: str) -> Vectors:
        """Embed a question: shape (dimension,), length 1."""
        fitted, _ = self._fit(text)
        vector: Vectors = self._embed(self._settings.query_model or self._model, [fitted])[0]
        return vector

    def _fit(self, text: str) -> tuple[str, int]:
        """As much of the text as the model reads, and how many tokens that is."""
        offsets = self._tokenizer.offsets(text)
        if is_blank(text):  # some servers refuse it, others answer a vector that means nothing
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
                hint="Set embedder.dimension to what embedder.model gives; a collection keeps its.",
            )
        return vectors

    def _request(self, model: str, texts: Sequence[str]) -> Vectors:
        try:
            response = self._client.get().embeddings.with_raw_response.create(
                model=model, input=list(texts), encoding_format="float"
            )
        except openai.APIError as error:
            # Not chained: what the server says may quote the text.
            raise _translate(error, self._settings) from None
        return _read(response.text, len(texts))


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices of texts of these lengths in tokens, in order, for each request."""
    batch: list[int] = []
    for i, length in enumerate(lengths):
        full = len(batch) == BATCH_TEXTS
        if batch and (full or sum(lengths[j] for j in batch) + length > BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _translate(error: openai.APIError, settings: EmbedderSettings) -> CallslipError:
    said = translated(
        error, settings, what="embedding server", section="embedder", down=EmbedderDown
    )
    if type(said) is InvalidRequest:
        said.advice = "Its model may read less than embedder.max_tokens says."
    return said


def _read(body: str, count: int) -> Vectors:
    """The vectors of an answer, in the order of the texts, at length 1."""
    try:
        rows = sorted(json.loads(body)["data"], key=lambda row: row["index"])
        vectors = np.array([row["embedding"] for row in rows], np.float32).reshape(count, -1)
        in_order = [row["index"] for row in rows] == list(range(count))
    except (KeyError, TypeError, ValueError):
        in_order = False
    if not in_order:
        raise SettingsError(
            "the embedding server's answer does not hold one vector for each text",
            hint="embedder.base_url must be that of an OpenAI-compatible server, mostly with /v1.",
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.all(np.isfinite(lengths) & (lengths > 0)):
        raise SettingsError(
            "the embedding server answered a vector that is not finite or is zero",
            hint="Its model does not work; try it in another precision, or take another model.",
        )
    unit: Vectors = vectors / lengths
    return unit
