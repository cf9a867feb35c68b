"""The local embedder: multilingual-e5-small on this machine, without any download."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from callslip.errors import EmbedderDown, InvalidRequest
from callslip.models.e5.network import Network
from callslip.models.e5.prepare import prepare
from callslip.models.e5.runtimes.choice import Device, Kind, runtime_kind
from callslip.models.e5.tensors import TOKENS, VECTORS
from callslip.models.e5.tokens import Tokenizer, is_blank
from callslip.models.e5.weights import SHA256
from callslip.models.embedders.contract import Vectors
from callslip.models.text.normalization import normalized
from callslip.per_process import PerProcess

WINDOW = 510
"""The most tokens of a text that the model reads, with the prefix, without the special tokens."""

BATCH_TOKENS = 512
"""The most tokens of a batch. On one core 2048 took a tenth longer and more memory."""

_QUERY, _PASSAGE = "query: ", "passage: "
"""The prefixes of all texts in the model's training; without them it ranks worse."""


class E5Embedder:
    """An `Embedder` of 384 dimensions for about 100 languages.

    A vector does not depend on the other texts of its batch. Of a text longer than `max_tokens`
    only the first window is embedded. Chunks are cut to fit, so that no text is lost, and a mean
    over windows ranked worst of the tested methods on three of four judged sets.

    The model loads when first used, once per process. Threads may share an instance.
    """

    model = f"e5-small/{SHA256[:8]}"
    dimension = 384
    lexical_only = False

    def __init__(
        self,
        models_dir: Path,
        tokenizer: Tokenizer,
        *,
        threads: int = 1,
        at_once: int = 1,
        device: Device = "cpu",
        kind: Kind | None = None,
    ) -> None:
        """At most `at_once` inferences of `threads` threads each run at once.

        `kind` is the runtime, by default the fastest that this machine has for `device`.
        """
        self._tokenizer = tokenizer
        self.runtime = kind or runtime_kind(device)
        self._network = PerProcess(
            lambda: Network(prepare(models_dir).graph, threads, self.runtime, at_once),
            droppable=True,
        )

    @property
    def max_tokens(self) -> int:
        """The tokens of the window that remain after the longer prefix."""
        return WINDOW - self._tokenizer.count(_PASSAGE)

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages: shape (len(texts), 384). Raises InvalidRequest for a blank text."""
        return self._embed(_PASSAGE, texts)

    def query(self, text: str) -> Vectors:
        """Embed a query: shape (384,). Raises InvalidRequest for a blank query."""
        vector: Vectors = self._embed(_QUERY, [text])[0]
        return vector

    def query_tokens(self, text: str) -> Vectors:
        """Return the network's vector of each token of a query: shape (tokens, 384), unit rows.

        The tokens of the prefix and the special tokens are left out: a blank text has no rows.
        """
        return self._tokens(_QUERY, text)

    def passage_tokens(self, text: str) -> Vectors:
        """Return the network's vector of each token of a passage, as `query_tokens` does."""
        return self._tokens(_PASSAGE, text)

    def _embed(self, prefix: str, texts: Sequence[str]) -> Vectors:
        if any(map(is_blank, texts)):
            raise InvalidRequest("a text to embed is blank")
        rows = [self._ids(prefix + text) for text in texts]
        vectors = np.empty((len(rows), self.dimension), np.float32)
        network = self._network.get()
        for batch in network.batches(rows, BATCH_TOKENS):
            vectors[batch] = network.run(VECTORS, [rows[i] for i in batch])
        if not np.isfinite(vectors).all():
            raise EmbedderDown(
                "the local embedder computed a vector that is not finite",
                hint="Its files are damaged: stop Callslip, remove the folder models in its data"
                " directory, and start it again; it makes the files again.",
            )
        return vectors

    def _ids(self, text: str) -> list[int]:
        """The ids of a text in NFC: the vocabulary has no decomposed letters."""
        return self._tokenizer.ids(normalized("NFC", text))[:WINDOW]

    def _tokens(self, prefix: str, text: str) -> Vectors:
        before = self._tokenizer.count(prefix.rstrip())
        row = self._ids(prefix + text)
        vectors = self._network.get().run(TOKENS, [row])[0, 1:-1]
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit[before:]
