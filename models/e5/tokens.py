"""The tokenizer of multilingual-e5-small: SentencePiece, rebuilt from the model's weights file.

No piece of the unigram model (Kudo 2018) contains a space between words, so the tokens of a text
are the tokens of its words, one word after the other.
"""

import re
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sentencepiece import SentencePieceProcessor

from callslip.models.e5.prepare import prepare
from callslip.models.e5.weights import Weights
from callslip.per_process import PerProcess

_CODE_POINTS = 0x110000
_SPACE = ord(" ")
_SPACES = re.compile(" {2,}")


class Tokenizer:
    """Counts tokens and finds their offsets. Loads when first used; threads may share it."""

    def __init__(self, models_dir: Path) -> None:
        """`models_dir` is the folder of the files that `models.e5.prepare` builds."""
        self._loaded = _loaded(models_dir)

    def ids(self, text: str) -> list[int]:
        """Return the token ids of a text, without special tokens; an empty list for blank text."""
        loaded = self._loaded.get()
        ids: list[int] = loaded.pieces.EncodeAsIds(loaded.normalize(text))
        return ids

    def count(self, text: str) -> int:
        """Return the number of tokens in a text."""
        return len(self.ids(text))

    def offsets(self, text: str) -> list[int]:
        """Return the offset in `text`, in characters, at which each token starts; in linear time.

        Offsets never decrease. A token that begins a word starts at the space before the word.
        Tokens of one character that normalization expands (`㈜` becomes `(주)`) share an offset. So
        `text[offsets[i]:offsets[j]]` contains the tokens i to j - 1; at each end it may differ by
        a token.
        """
        loaded = self._loaded.get()
        normalized, origin = loaded.normalize_tracked(text)
        pieces: list[str] = loaded.pieces.EncodeAsPieces(normalized)
        if not pieces:
            return []
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        # SentencePiece puts a space marker before the text, which shifts every offset by one
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
        """Return the text as in the model's training; SentencePiece itself adds the first space."""
        return _SPACES.sub(" ", well_formed(text).translate(self._table)).removeprefix(" ")

    def normalize_tracked(self, text: str) -> tuple[str, npt.NDArray[np.int64]]:
        """Return the normalized text, and for each of its characters the offset in `text`."""
        text = well_formed(text)
        origin = np.repeat(np.arange(len(text)), self._lengths[_code_points(text)])
        characters = _code_points(text.translate(self._table))
        space = characters == _SPACE
        keep = ~space
        keep[1:] |= ~space[:-1]  # keep the first space of a run, except at the start of the text
        normalized = characters[keep].tobytes().decode("utf-32-le")
        return normalized, origin[keep]


@cache
def _loaded(models_dir: Path) -> PerProcess[_Loaded]:
    """Return what all tokenizers of a process share, and the forks of the process too: 36 MB."""
    return PerProcess(lambda: _Loaded(models_dir), forkable=True)


def is_blank(text: str) -> bool:
    """Return whether a text has nothing to embed: only spaces and invisible characters."""
    return not text.translate(_normalization()).strip(" ")


def well_formed(text: str) -> str:
    """Return the text with a question mark for each lone surrogate, which UTF-8 cannot encode.

    The length does not change.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


@cache
def _normalization() -> dict[int, str]:
    return Weights.of_wheel().normalization


def _code_points(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), "<u4")
