"""A fit as one `.npz`: what a client carries away and brings back.

Read as data of a stranger: nothing is unpickled, what it unpacks to is bounded, and every array is
held against the others before it is used.
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

from stores.tfidf.grams import UNKNOWN, Integers, Model, Postings, count, fit

FORMAT = 2

MOST_BYTES = 400_000_000
"""Of all arrays, unpacked; 20 MB of English prose give a fifth of it."""

MOST_TEXTS = 2_000_000
"""So that no number in a file decides how much memory a question takes."""

MOST_WORDS = 4_000_000
"""Of 20 MB of text, where its caller names no other number."""

MOST_BYTES_OF_A_WORD = 20
"""On average, its newline included."""

MOST_ABOUT = 65_536
"""Bytes of JSON."""

_HEADER = 1024
"""Bytes before an array, at most."""

_PAIRS = 1 << 32
"""The n-grams from here on are pairs."""

_reading = Lock()
"""Of all that are read in a process at once, one is unpacked."""


class FitDamaged(ValueError):
    """The bytes are no fit that `Fit.packed` wrote."""


@dataclass(frozen=True)
class Fit:
    """TF-IDF of texts, with what the caller wants to know of it later (`about`, JSON)."""

    model: Model
    postings: Postings
    about: Mapping[str, Any]

    @classmethod
    def of(cls, texts: Sequence[str], about: Mapping[str, Any]) -> "Fit":
        """Fit on analyzed texts: words separated by spaces."""
        return cls(*fit(texts), about)

    @classmethod
    def read(cls, data: bytes, most_words: int = MOST_WORDS) -> "Fit":
        """What `packed` wrote; FitDamaged, also for one of more words."""
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
        """How many texts it was fitted on."""
        return self.model.texts

    def packed(self) -> bytes:
        """Arrays, words a line each, and JSON, compressed."""
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
        """The numbers, from 0, of the texts by cosine with an analyzed text, then by number."""
        words = self.model.words
        asked = count([terms], lambda word: words.get(word, UNKNOWN))
        weights = asked.matrix.toarray()[0].astype(np.float64)
        weights *= self.model.idf_of(asked.grams)
        scores = np.zeros(self.texts)
        self.postings.add_to(scores, asked.grams, weights)
        return [int(at) for at in np.argsort(-scores, kind="stable")[:most]]


def _read(data: bytes, most_words: int) -> Fit:
    with ZipFile(io.BytesIO(data)) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
        if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
            raise ValueError("unpacks to too much")
    _check(sizes["words.npy"] <= _HEADER + most_words * MOST_BYTES_OF_A_WORD, "words")
    _check(sizes["about.npy"] <= _HEADER + MOST_ABOUT, "format")
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    grams: Integers = arrays["grams"]
    idf, texts = arrays["idf"], arrays["texts"]
    told = json.loads(_bytes(arrays["about"]))
    _check(told["format"] == FORMAT and isinstance(told["about"], dict), "format")
    _check(texts.shape == (1,) and texts.dtype == np.int64, "number of texts")
    _check(0 <= int(texts[0]) <= MOST_TEXTS, "number of texts")
    _check(grams.ndim == 1 and grams.dtype == np.int64 and _ascend(grams), "n-grams")
    _check(idf.shape == grams.shape and idf.dtype == np.float64, "frequencies")
    _check(bool(np.isfinite(idf).all()), "frequencies")
    single = int(np.searchsorted(grams, _PAIRS))
    _check(single <= most_words, "words")
    numbers = _words(_bytes(arrays["words"]), single)
    weights, places, starts = arrays["data"], arrays["indices"], arrays["indptr"]
    _check(weights.dtype == np.float32 and bool(np.isfinite(weights).all()), "weights")
    _check(places.dtype.kind == starts.dtype.kind == "i", "places")
    matrix = sparse.csc_array((weights, places, starts), shape=(int(texts[0]), len(grams)))
    matrix.check_format(full_check=True)
    model = Model(numbers, grams, idf, int(texts[0]))
    return Fit(model, Postings(grams, matrix), told["about"])


def _words(lines: bytes, count: int) -> dict[str, int]:
    """The number of each word. They are counted before they are split."""
    _check(count == (lines.count(b"\n") + 1 if lines else 0), "words")
    words = lines.decode().split("\n") if lines else []
    numbers = {word: number for number, word in enumerate(words)}
    _check(len(numbers) == count and "" not in numbers, "words")
    return numbers


def _bytes(array: Any) -> bytes:
    told: bytes = array.astype(np.uint8, casting="no", copy=False).tobytes()
    return told


def _ascend(grams: Integers) -> bool:
    return bool((grams[1:] > grams[:-1]).all())


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"its {what} do not fit")
