"""Runs a graph of `models.e5.onnx_graph` on token ids."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

from callslip.models.e5 import onnx_graph
from callslip.models.e5.weights import Weights, unpack

Floats = npt.NDArray[np.float32]


class Network:
    """One ONNX graph in onnxruntime. Threads may share it; a fork may not."""

    def __init__(self, graph: Path, threads: int) -> None:
        """`threads` is the number of threads of one inference."""
        weights = Weights.of_wheel()
        hidden = weights.shape.hidden
        self._special = weights.special
        self._words = weights.blocks("emb.word", hidden)
        positions = weights.vector("emb.pos").reshape(-1, hidden)
        self._positions = positions + weights.vector("emb.type")[:hidden]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Threads that spin while they wait would take the cores from other processes.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            str(graph), options, providers=["CPUExecutionProvider"]
        )

    @property
    def separator(self) -> int:
        """The id of the token between two texts of one input."""
        return self._special.eos

    def run(self, output: str, rows: Sequence[Sequence[int]]) -> Floats:
        """Return an output of the graph for one batch of token ids.

        A token of the start is added before each row and one of the end after it. The outputs have
        the shapes that `onnx_graph` names, with the longest row's number of tokens.
        """
        longest = max(map(len, rows)) + 2
        ids = np.full((len(rows), longest), self._special.pad, np.int64)
        mask = np.zeros((len(rows), longest), np.int32)
        for i, row in enumerate(rows):
            ids[i, : len(row) + 2] = [self._special.bos, *row, self._special.eos]
            mask[i, : len(row) + 2] = 1
        embeddings: Floats = unpack(self._words[ids]) + self._positions[:longest]
        inputs = {onnx_graph.EMBEDDINGS: embeddings, onnx_graph.MASK: mask}
        (values,) = self._session.run([output], inputs)
        return np.asarray(values, np.float32)
