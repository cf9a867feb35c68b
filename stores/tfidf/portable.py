"""A fit as one `.npz`: what a client carries away and brings back.

Read as data of a stranger: nothing is unpickled, what it unpacks to is bounded, and every array is
held against the others before it is used.
"""

import io
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from scipy import sparse

from stores.tfidf.grams import UNKNOWN, Integers, Model, Postings, count, fit

FORMAT = 1

MOST_BYTES = 400_000_000
"""Of all arrays, unpacked; 20 MB of English prose give a fifth of it."""

MOST_TEXTS = 2_000_000
"""So that no number in a file decides how much memory a question takes."""


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
    def read(cls, data: bytes) -> "Fit":
        """What `packed` wrote; FitDamaged."""
        try:
            return _read(data)
        except (
            *(ValueError, LookupError, TypeError, EOFError, OSError, OverflowError),
            *(BadZipFile, zlib.error, MemoryError, NotImplementedError, RuntimeError),
        ) as error:
            raise FitDamaged(f"no matrix of chunks: {type(error).__name__}") from error

    @property
    def texts(self) -> int:
        """How many texts it was fitted on."""
        return self.model.texts

    def packed(self) -> bytes:
        """Arrays and JSON, compressed."""
        matrix = self.postings.matrix
        words = {"format": FORMAT, "about": dict(self.about), "words": list(self.model.words)}
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
            words=np.frombuffer(json.dumps(words).encode(), np.uint8),
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


def _read(data: bytes) -> Fit:
    with ZipFile(io.BytesIO(data)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
            raise ValueError("unpacks to too much")
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    grams: Integers = arrays["grams"]
    idf, texts = arrays["idf"], arrays["texts"]
    told = json.loads(arrays["words"].astype(np.uint8, casting="no").tobytes())
    words = told["words"]
    _check(told["format"] == FORMAT and isinstance(told["about"], dict), "format")
    _check(texts.shape == (1,) and texts.dtype == np.int64, "number of texts")
    _check(0 <= int(texts[0]) <= MOST_TEXTS, "number of texts")
    _check(grams.ndim == 1 and grams.dtype == np.int64 and _ascend(grams), "n-grams")
    _check(idf.shape == grams.shape and idf.dtype == np.float64, "frequencies")
    _check(bool(np.isfinite(idf).all()), "frequencies")
    _check(all(isinstance(word, str) for word in words), "words")
    weights, places, starts = arrays["data"], arrays["indices"], arrays["indptr"]
    _check(weights.dtype == np.float32 and bool(np.isfinite(weights).all()), "weights")
    _check(places.dtype.kind == starts.dtype.kind == "i", "places")
    matrix = sparse.csc_array((weights, places, starts), shape=(int(texts[0]), len(grams)))
    matrix.check_format(full_check=True)
    numbers = {word: number for number, word in enumerate(words)}
    model = Model(numbers, grams, idf, int(texts[0]))
    return Fit(model, Postings(grams, matrix), told["about"])


def _ascend(grams: Integers) -> bool:
    return bool((grams[1:] > grams[:-1]).all())


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"its {what} do not fit")
