"""The tokenizer of multilingual-e5-small: SentencePiece, rebuilt from the model's weights file.

Its unigram model (Kudo 2018) has no piece that reaches across a space, so the tokens of a text are
those of its words, one after the other.
"""

import re
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sentencepiece import SentencePieceProcessor

from models.per_process import PerProcess
from models.prepare import prepare
from models.weights import Weights

_CODE_POINTS = 0x110000
_SPACE = ord(" ")
_SPACES = re.compile(" {2,}")


class Tokenizer:
    """Counts and places tokens. Loads when first used; threads may share it."""

    def __init__(self, models_dir: Path) -> None:
        """`models_dir` keeps what is prepared once (models.prepare)."""
        self._loaded = PerProcess(lambda: _Loaded(models_dir))

    def ids(self, text: str) -> list[int]:
        """The tokens of a text, without the special ones at its ends; none for blank text."""
        loaded = self._loaded.get()
        ids: list[int] = loaded.pieces.EncodeAsIds(loaded.normalize(text))
        return ids

    def count(self, text: str) -> int:
        """How many tokens a text has."""
        return len(self.ids(text))

    def offsets(self, text: str) -> list[int]:
        """Where each token starts in `text`, in characters, never descending; linear in time.

        A token that begins a word starts at the space before it. Tokens that one character was
        normalized to (`㈜` becomes `(주)`) share its offset. So `text[offsets[i]:offsets[j]]`
        holds the tokens i to j - 1, up to a token at either cut.
        """
        loaded = self._loaded.get()
        normalized, origin = loaded.normalize_tracked(text)
        pieces: list[str] = loaded.pieces.EncodeAsPieces(normalized)
        if not pieces:
            return []
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        # SentencePiece puts a marker for a space before the text, so all is one further right
        starts = np.maximum(np.cumsum(lengths) - lengths - 1, 0)
        offsets: list[int] = origin[starts].tolist()
        return offsets


class _Loaded:
    def __init__(self, models_dir: Path) -> None:
        self.pieces = SentencePieceProcessor()
        self.pieces.LoadFromSerializedProto(prepare(models_dir).pieces.read_bytes())
        self._table = _normalization()
        self._lengths = np.ones(_CODE_POINTS, np.uint8)
        for code_point, replacement in self._table.items():
            self._lengths[code_point] = len(replacement)

    def normalize(self, text: str) -> str:
        """The text as the model was trained on it; SentencePiece adds the first space itself."""
        return _SPACES.sub(" ", well_formed(text).translate(self._table)).removeprefix(" ")

    def normalize_tracked(self, text: str) -> tuple[str, npt.NDArray[np.int64]]:
        """As `normalize`, with the offset in `text` that each character came from."""
        text = well_formed(text)
        origin = np.repeat(np.arange(len(text)), self._lengths[_code_points(text)])
        characters = _code_points(text.translate(self._table))
        space = characters == _SPACE
        keep = ~space
        keep[1:] |= ~space[:-1]  # the first space of a run stays, but not at the very start
        normalized = characters[keep].tobytes().decode("utf-32-le")
        return normalized, origin[keep]


def is_blank(text: str) -> bool:
    """Whether nothing of a text is left to embed: spaces, and characters that nobody sees."""
    return not text.translate(_normalization()).strip(" ")


def well_formed(text: str) -> str:
    """The text with lone surrogates, which have no UTF-8, as question marks; the same length."""
    return text.encode("utf-8", "replace").decode("utf-8")


@cache
def _normalization() -> dict[int, str]:
    return Weights.of_wheel().normalization


def _code_points(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), "<u4")
