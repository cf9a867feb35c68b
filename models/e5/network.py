"""Runs a graph of `models.e5.onnx_graph` on token ids."""

from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path

import numpy as np
import numpy.typing as npt

from callslip.models.batches import by_length, of_one_length
from callslip.models.e5.runtimes.choice import Kind, load
from callslip.models.e5.runtimes.contract import Floats
from callslip.models.e5.tensors import EMBEDDINGS, MASK, VECTORS
from callslip.models.e5.weights import Weights, unpack

CUDA_BATCH_TOKENS = 4096
"""The most tokens of a batch on a GPU, which computes many rows in the time of one.

A process keeps the GPU memory of its largest batch. With 16,384 tokens it embeds 7 % more passages
per second, and keeps 2.2 GB more than it has loaded instead of .5 GB.
"""


BF16_STEPS = ((64, 8), (128, 16), (inf, 32))
"""In bf16 an input of at most so many tokens is padded to a multiple of the second number.

OpenVINO compiles its products for each new shape of a batch, which takes 6 to 14 ms. With AMX a
query takes 6 to 14 ms and a passage of 320 tokens 50. Without padding nearly each text has a length
of its own. AMX multiplies tiles of 16 rows: 320 tokens take .8 of the time of 318.
"""


class Network:
    """One ONNX graph in a runtime. Threads may share it; a fork may not."""

    def __init__(self, graph: Path, threads: int, kind: Kind, at_once: int = 1) -> None:
        """At most `at_once` inferences of `threads` threads each run at once."""
        weights = Weights.of_wheel()
        hidden = weights.shape.hidden
        self._special = weights.special
        self._words = weights.blocks("emb.word", hidden)
        positions = weights.vector("emb.pos").reshape(-1, hidden)
        self._positions = positions + weights.vector("emb.type")[:hidden]
        self._kind = kind
        self._runtime = load(kind, graph, threads, at_once)

    @property
    def separator(self) -> int:
        """The id of the token between two texts of one input."""
        return self._special.eos

    def batches(self, rows: Sequence[Sequence[int]], most_tokens: int) -> Iterator[list[int]]:
        """Iterate over batches of indices of rows, of at most `most_tokens` tokens with padding.

        A batch on a GPU may have more. In bf16 each row is padded to a length that depends on that
        row alone, and a batch has rows of one padded length: padding to the longest row would
        change the order of sums, and with that order the fourth digit of a vector.
        """
        lengths = [self._length(row) for row in rows]
        if self._kind == "openvino bf16":
            return of_one_length(lengths, most_tokens)
        cuda = self._kind == "onnxruntime cuda"
        return by_length(lengths, max(most_tokens, CUDA_BATCH_TOKENS) if cuda else most_tokens)

    def run(self, output: str, rows: Sequence[Sequence[int]]) -> Floats:
        """Return an output of the graph for one batch of token ids.

        A token of the start is added before each row and one of the end after it. The outputs have
        the shapes that `tensors` names, with the longest row's number of tokens.
        """
        longest = max(map(self._length, rows))
        ids = np.full((len(rows), longest), self._special.pad, np.int64)
        mask = np.zeros((len(rows), longest), np.int32)
        for i, row in enumerate(rows):
            ids[i, : len(row) + 2] = [self._special.bos, *row, self._special.eos]
            mask[i, : len(row) + 2] = 1
        embeddings = self._embedded(ids) + self._positions[:longest]
        values = self._runtime.run(output, {EMBEDDINGS: embeddings, MASK: mask})
        return values if output == VECTORS else values[:, : max(map(len, rows)) + 2]

    def _length(self, row: Sequence[int]) -> int:
        """Return the number of tokens of a row with the start token, the end token and padding."""
        tokens = len(row) + 2
        if self._kind != "openvino bf16":
            return tokens
        step = next(step for most, step in BF16_STEPS if tokens <= most)
        return -(-tokens // step) * step

    def _embedded(self, ids: npt.NDArray[np.int64]) -> Floats:
        """Return the vectors of token ids; those of several rows have many tokens in common."""
        if len(ids) == 1:
            return unpack(self._words[ids])
        known, at = np.unique(ids, return_inverse=True)
        return unpack(self._words[known])[at.reshape(ids.shape)]
