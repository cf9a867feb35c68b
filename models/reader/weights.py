"""The reader's weights: those of the encoder, with the upper layers and the head that were trained.

`reader.npz` has the tensors of the trained layers under the encoder's names: a matrix in int8 with
one scale for each row (`name` and `name/scale`), a vector in half precision. docs/reader.md says
how the tensors were trained.
"""

import hashlib
from pathlib import Path

import numpy as np

from callslip.models.e5.weights import Floats, Shape, Weights

FILE = Path(__file__).with_name("reader.npz")

SCALE = "/scale"
"""The end of the name of a matrix's scales."""


def digest() -> str:
    """Return the SHA-256 digest of the file of trained tensors, in hexadecimal digits."""
    return hashlib.sha256(FILE.read_bytes()).hexdigest()


class ReaderWeights:
    """The tensors of the reader: `models.e5.onnx_graph.EncoderWeights`."""

    def __init__(self, encoder: Weights, file: Path = FILE) -> None:
        """Read a file of trained tensors; the other tensors are the encoder's."""
        self._encoder = encoder
        with np.load(file) as tensors:
            self._trained = dict(tensors)

    @property
    def shape(self) -> Shape:
        """The dimensions of the network."""
        return self._encoder.shape

    def vector(self, name: str) -> Floats:
        """Return a vector: shape (count,)."""
        trained = self._trained.get(name)
        return self._encoder.vector(name) if trained is None else trained.astype(np.float32)

    def matrix(self, name: str, width: int) -> Floats:
        """Return a matrix of `width` columns: shape (rows, width)."""
        trained = self._trained.get(name)
        if trained is None:
            return self._encoder.matrix(name, width)
        scales: Floats = self._trained[name + SCALE].astype(np.float32)
        matrix: Floats = trained.astype(np.float32) * scales[:, None]
        return matrix
