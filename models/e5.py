"""The local embedder: multilingual-e5-small by onnxruntime, nothing downloaded."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

from callslip.errors import InvalidRequest
from models import onnx_graph
from models.batches import by_length
from models.embedder import Vectors
from models.per_process import PerProcess
from models.prepare import prepare
from models.tokens import Tokenizer, is_blank
from models.weights import SHA256, Weights, unpack

WINDOW = 510
"""Tokens that the model reads of one text, prefix included, without the two special ones."""

BATCH_TOKENS = 512
"""Padded tokens of a batch. On one core 2048 took a tenth longer, and more memory."""

_QUERY, _PASSAGE = "query: ", "passage: "
"""The model was trained with these before every text; without them its ranking suffers."""


class E5Embedder:
    """An `Embedder` of 384 dimensions for about 100 languages.

    A vector does not depend on what else is in its batch. Of a text longer than `max_tokens` the
    first window is embedded and the rest is not read: chunks are cut to fit, so that nothing is
    lost, and a mean over windows ranked worst of the ways tried on three of four judged sets.

    Loads when first used and once per process; threads may share it.
    """

    model = f"e5-small/{SHA256[:8]}"
    dimension = 384
    lexical_only = False

    def __init__(self, models_dir: Path, tokenizer: Tokenizer, *, threads: int = 1) -> None:
        """`threads` of one inference."""
        self._tokenizer = tokenizer
        self._network = PerProcess(lambda: _Network(models_dir, threads))

    @property
    def max_tokens(self) -> int:
        """What the window leaves beside the longer prefix."""
        return WINDOW - self._tokenizer.count(_PASSAGE)

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Embed what is stored: shape (len(texts), 384). InvalidRequest for a blank text."""
        return self._embed(_PASSAGE, texts)

    def query(self, text: str) -> Vectors:
        """Embed a question: shape (384,). InvalidRequest for a blank one."""
        vector: Vectors = self._embed(_QUERY, [text])[0]
        return vector

    def query_tokens(self, text: str) -> Vectors:
        """What the network makes of each token of a question: shape (tokens, 384), unit rows.

        Without those of the model's prefix and of its special tokens: none for a blank text.
        """
        return self._tokens(_QUERY, text)

    def passage_tokens(self, text: str) -> Vectors:
        """As `query_tokens`, of what is stored."""
        return self._tokens(_PASSAGE, text)

    def _embed(self, prefix: str, texts: Sequence[str]) -> Vectors:
        if any(map(is_blank, texts)):
            raise InvalidRequest("a text to embed is blank")
        rows = [self._tokenizer.ids(prefix + text)[:WINDOW] for text in texts]
        vectors = np.empty((len(rows), self.dimension), np.float32)
        for batch in by_length([len(row) + 2 for row in rows], BATCH_TOKENS):
            vectors[batch] = self._network.get().run([rows[i] for i in batch])
        return vectors

    def _tokens(self, prefix: str, text: str) -> Vectors:
        before = self._tokenizer.count(prefix.rstrip())
        return self._network.get().tokens(self._tokenizer.ids(prefix + text)[:WINDOW])[before:]


class _Network:
    def __init__(self, models_dir: Path, threads: int) -> None:
        weights = Weights.of_wheel()
        hidden = weights.shape.hidden
        self._special = weights.special
        self._words = weights.blocks("emb.word", hidden)
        positions = weights.vector("emb.pos").reshape(-1, hidden)
        self._positions = positions + weights.vector("emb.type")[:hidden]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Threads that spin while they wait take the cores from the other processes.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            str(prepare(models_dir).graph), options, providers=["CPUExecutionProvider"]
        )

    def run(self, rows: Sequence[Sequence[int]]) -> Vectors:
        """Vectors of one batch of token ids: shape (len(rows), 384), rows of length 1."""
        return self._answer(onnx_graph.VECTORS, rows)

    def tokens(self, row: Sequence[int]) -> Vectors:
        """Vectors of each token: shape (len(row), 384), unit rows."""
        vectors: Vectors = self._answer(onnx_graph.TOKENS, [row])[0, 1:-1]
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    def _answer(self, output: str, rows: Sequence[Sequence[int]]) -> Vectors:
        longest = max(map(len, rows)) + 2
        ids = np.full((len(rows), longest), self._special.pad, np.int64)
        mask = np.zeros((len(rows), longest), np.int32)
        for i, row in enumerate(rows):
            ids[i, : len(row) + 2] = [self._special.bos, *row, self._special.eos]
            mask[i, : len(row) + 2] = 1
        embeddings: npt.NDArray[np.float32] = unpack(self._words[ids]) + self._positions[:longest]
        inputs = {onnx_graph.EMBEDDINGS: embeddings, onnx_graph.MASK: mask}
        (vectors,) = self._session.run([output], inputs)
        return np.asarray(vectors, np.float32)
