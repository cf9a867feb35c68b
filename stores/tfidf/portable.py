"""A fit as one `.npz` file, which a client receives and sends back.

The file is untrusted: nothing is unpickled, the size of the unpacked data is bounded, and every
array is checked against the others before use.
"""

import io
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from scipy import sparse

from callslip.stores.tfidf.grams import UNKNOWN, Integers, Model, Postings, count, fit

FORMAT = 2

MOST_BYTES = 400_000_000
"""The most bytes of all unpacked arrays; 20 MB of English prose need a fifth of it."""

MOST_TEXTS = 2_000_000
"""The most texts: no number in a file may decide how much memory a query takes."""

MOST_WORDS = 4_000_000
"""The most distinct words if the caller provides no other limit: those of 20 MB of text."""

MOST_BYTES_OF_A_WORD = 20
"""The most bytes of a word on average, with its newline."""

MOST_ABOUT = 65_536
"""The most bytes of the JSON text."""

_HEADER = 1024
"""The most bytes before the data of an array."""

_PAIRS = 1 << 32
"""The first integer that is a pair of words; smaller n-grams are single words."""

_reading = Lock()
"""A process unpacks one file at a time."""


class FitDamaged(ValueError):
    """The bytes are not a fit that `Fit.packed` wrote, or exceed a limit."""


@dataclass(frozen=True)
class Fit:
    """TF-IDF of texts, with data of the caller that JSON can represent (`about`)."""

    model: Model
    postings: Postings
    about: Mapping[str, Any]

    @classmethod
    def of(cls, texts: Sequence[str], about: Mapping[str, Any]) -> "Fit":
        """Fit on analyzed texts: words separated by spaces."""
        return cls(*fit(texts), about)

    @classmethod
    def read(cls, data: bytes, most_words: int = MOST_WORDS) -> "Fit":
        """Read the output of `packed`. Raises FitDamaged, also for more than `most_words` words."""
        try:
            with _reading:
                return _read(data, most_words)
        except (
            *(ValueError, LookupError, TypeError, EOFError, OSError, OverflowError),
            *(BadZipFile, zlib.error, MemoryError, NotImplementedError, RuntimeError),
            *(AttributeError, SyntaxError, TokenError),
        ) as error:
            raise FitDamaged(f"no matrix of chunks: {type(error).__name__}") from error

    @property
    def texts(self) -> int:
        """The number of texts in the fit."""
        return self.model.texts

    def packed(self) -> bytes:
        """The fit as a compressed `.npz`: arrays, the words (one per line) and JSON."""
        matrix = self.postings.matrix
        about = json.dumps({"format": FORMAT, "about": dict(self.about)})
        file = io.BytesIO()
        np.savez_compressed(
            file,
            allow_pickle=False,
            grams=self.model.grams,
            idf=self.model.idf,
            indptr=matrix.indptr,
            indices=matrix.indices,
            data=matrix.data.astype(np.float32),
            texts=np.array([self.texts], np.int64),
            words=np.frombuffer("\n".join(self.model.words).encode(), np.uint8),
            about=np.frombuffer(about.encode(), np.uint8),
        )
        return file.getvalue()

    def nearest(self, terms: str, most: int) -> list[int]:
        """The indices, from 0, of the `most` texts with the greatest cosine to an analyzed text.

        Ties are in order of the index.
        """
        words = self.model.words
        counted = count([terms], lambda word: words.get(word, UNKNOWN))
        weights = counted.matrix.toarray()[0].astype(np.float64)
        weights *= self.model.idf_of(counted.grams)
        scores = np.zeros(self.texts)
        self.postings.add_to(scores, counted.grams, weights)
        return [int(at) for at in np.argsort(-scores, kind="stable")[:most]]


def _read(data: bytes, most_words: int) -> Fit:
    with ZipFile(io.BytesIO(data)) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
        if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
            raise ValueError("unpacks to too much")
    _check(sizes["words.npy"] <= _HEADER + most_words * MOST_BYTES_OF_A_WORD, "words")
    _check(sizes["about.npy"] <= _HEADER + MOST_ABOUT, "format")
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    grams: Integers = arrays["grams"]
    idf, texts = arrays["idf"], arrays["texts"]
    header = json.loads(_bytes(arrays["about"]))
    _check(header["format"] == FORMAT and isinstance(header["about"], dict), "format")
    _check(texts.shape == (1,) and texts.dtype == np.int64, "number of texts")
    _check(0 <= int(texts[0]) <= MOST_TEXTS, "number of texts")
    _check(grams.ndim == 1 and grams.dtype == np.int64 and _ascend(grams), "n-grams")
    _check(idf.shape == grams.shape and idf.dtype == np.float64, "frequencies")
    _check(bool(np.isfinite(idf).all()), "frequencies")
    single = int(np.searchsorted(grams, _PAIRS))
    _check(single <= most_words, "words")
    numbers = _words(_bytes(arrays["words"]), single)
    weights, indices, starts = arrays["data"], arrays["indices"], arrays["indptr"]
    _check(weights.dtype == np.float32 and bool(np.isfinite(weights).all()), "weights")
    _check(indices.dtype.kind == starts.dtype.kind == "i", "places")
    matrix = sparse.csc_array((weights, indices, starts), shape=(int(texts[0]), len(grams)))
    matrix.check_format(full_check=True)
    model = Model(numbers, grams, idf, int(texts[0]))
    return Fit(model, Postings(grams, matrix), header["about"])


def _words(lines: bytes, count: int) -> dict[str, int]:
    """The number of each word. The lines are counted before they are split."""
    _check(count == (lines.count(b"\n") + 1 if lines else 0), "words")
    words = lines.decode().split("\n") if lines else []
    numbers = {word: number for number, word in enumerate(words)}
    _check(len(numbers) == count and "" not in numbers, "words")
    return numbers


def _bytes(array: Any) -> bytes:
    data: bytes = array.astype(np.uint8, casting="no", copy=False).tobytes()
    return data


def _ascend(grams: Integers) -> bool:
    return bool((grams[1:] > grams[:-1]).all())


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"its {what} do not fit")
