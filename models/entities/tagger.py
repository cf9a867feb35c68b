"""Recognition of names with the weights of spaCy's model, in few and large products of matrices.

spaCy's recognizer chooses a move for one token after the other, because the score of a move depends
on the entity that is open. Outside of entities it depends on the token alone: so all tokens outside
are scored in one product, and only those of entities in turn. The names are the same as spaCy's.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

BATCH = 12
"""Texts in one product: 3,000 tokens with chunks, so that the values stay in the core's cache."""

_MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 1], np.uint64)
"""Makes one number of the four hashes that describe the form of a token."""

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Name:
    """A span of characters, and spaCy's label of it."""

    label: str
    start: int
    end: int


class Tagger:
    """Finds the names that spaCy's component `ner` finds. Threads may share an instance."""

    def __init__(self, pipeline: "Language") -> None:
        ner: Any = pipeline.get_pipe("ner")
        self._make_doc = pipeline.make_doc
        self._encoder, self._moves = _Encoder(ner.model.get_ref("tok2vec")), _Moves(ner)
        self._blas = ThreadpoolController().select(user_api="blas")

    def find(self, texts: Iterable[str]) -> Iterator[list[Name]]:
        """Iterate over the names in each text, in their order."""
        remaining = iter(texts)
        while batch := [self._make_doc(text) for text in islice(remaining, BATCH)]:
            with self._blas.limit(limits=1):  # the processes of a worker share the cores
                names = list(self._moves.names(batch, self._encoder.vectors(batch)))
            yield from names


class _Encoder:
    """The network `tok2vec`: a vector of a token's form, and convolutions over its neighbours."""

    def __init__(self, model: Any) -> None:
        model._to_ops(type(model.ops)(use_blis=False))  # numpy multiplies three times as fast
        forms, convolutions = model.layers[0].layers
        self._columns = forms.layers[0].attrs["columns"]
        self._embed, self._mix = forms.layers[2].layers[0], forms.layers[3].layers[0]
        self._padding = convolutions.attrs["pad"]
        layers = [layer for layer in convolutions.walk() if layer.name in ("maxout", "layernorm")]
        self._convolutions = list(map(_Convolution, layers[::2], layers[1::2]))
        self._last = model.layers[2]

    def vectors(self, documents: "Sequence[Doc]") -> Floats:
        """Return the vectors of all tokens, one document after the other."""
        forms = np.concatenate([document.to_array(self._columns) for document in documents])
        _, first, which = np.unique(forms @ _MIX, return_index=True, return_inverse=True)
        embedded = self._mix.predict(self._embed.predict(forms[first]))
        ends = np.cumsum([len(document) for document in documents])
        # Rows of zeros between documents: what one convolution writes there, the next one reads.
        rows = np.arange(len(forms)) + self._padding
        rows += self._padding * np.searchsorted(ends, np.arange(len(forms)), side="right")
        padded = np.zeros((len(forms) + self._padding * (len(ends) + 1), embedded.shape[1]), "f")
        padded[rows] = embedded[which]
        for convolve in self._convolutions:
            padded += convolve(padded)
        vectors: Floats = self._last.predict(padded[rows])
        return vectors


class _Convolution:
    """Maxout over a token and its two neighbours, then layer normalization."""

    def __init__(self, maxout: Any, normalization: Any) -> None:
        weights, bias = maxout.get_param("W"), maxout.get_param("b")  # (width, pieces, 3 * width)
        self._weights = weights.transpose(2, 1, 0).reshape(weights.shape[2], -1)
        self._bias, self._width = bias.T.reshape(-1), len(bias)
        self._gain, self._shift = normalization.get_param("G"), normalization.get_param("b")

    def __call__(self, vectors: Floats) -> Floats:
        width = self._width
        ended = np.pad(vectors, ((1, 1), (0, 0))).reshape(-1)
        windows = np.ascontiguousarray(sliding_window_view(ended, 3 * width)[::width])
        pieces = windows @ self._weights
        pieces += self._bias
        best: Floats = pieces[:, :width]
        for at in range(width, pieces.shape[1], width):
            best = np.maximum(best, pieces[:, at : at + width])
        best -= best.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", best, best) / np.float32(width) + np.float32(1e-8)
        best *= (1 / np.sqrt(variance))[:, np.newaxis]
        best *= self._gain
        best += self._shift
        return best


class _Moves:
    """The moves B(egin), I(n), L(ast) and U(nit) with a label, and O(ut), and their scores.

    A score is a layer over the sum of the features of up to three tokens: the token and, within an
    entity, the entity's first token and the token before.
    """

    def __init__(self, ner: Any) -> None:
        lower, upper = ner.model.get_ref("lower"), ner.model.get_ref("upper")
        by_piece = lower.get_param("W").transpose(0, 2, 1, 3)  # (3, 2, hidden, width)
        self._features = by_piece.reshape(-1, by_piece.shape[3]).T
        self._bias = lower.get_param("b").T.reshape(-1)
        missing = lower.get_param("pad")[0].transpose(0, 2, 1).reshape(3, -1)
        self._outside = missing[1] + missing[2] + self._bias
        weights, bias = upper.get_param("W"), upper.get_param("b")
        moves = [ner.moves.get_class_name(n).partition("-")[::2] for n in range(len(bias))]
        first = [n for n, (kind, label) in enumerate(moves) if kind in "BU" and label]
        first.insert(0, moves.index(("O", "")))
        self._first = [moves[n] for n in first]
        self._first_weights, self._first_bias = weights[first].T, bias[first]
        self._begins = np.flatnonzero([kind == "B" for kind, _ in self._first])
        self._more: dict[str, tuple[Floats, float]] = {}
        """By label: the weights and the bias of I, less those of L."""
        for label in {label for _, label in self._first[1:]}:
            more, last = moves.index(("I", label)), moves.index(("L", label))
            self._more[label] = weights[more] - weights[last], bias[more] - bias[last]

    def names(self, documents: "Sequence[Doc]", vectors: Floats) -> Iterator[list[Name]]:
        """Iterate over the names in each document; `vectors` has a row for each of its tokens."""
        features = np.split(vectors @ self._features, 3, axis=1)
        scores = _maxout(features[0] + self._outside) @ self._first_weights + self._first_bias
        ends = np.cumsum([len(document) for document in documents])
        scores[np.ix_(ends[ends > 0] - 1, self._begins)] = -np.inf
        spaces = np.concatenate([document.to_array("IS_SPACE") for document in documents])
        moves = np.where(spaces, 0, scores.argmax(axis=1))
        starts = iter(np.flatnonzero(moves).tolist())
        begin = after = 0
        start = next(starts, len(moves))
        for document, end in zip(documents, ends.tolist(), strict=True):
            names = []
            while start < end:
                if start >= after:
                    kind, label = self._first[moves[start]]
                    last = self._last(label, start, end, features) if kind == "B" else start
                    token = document[last - begin]
                    names.append(Name(label, document[start - begin].idx, token.idx + len(token)))
                    after = last + 1
                start = next(starts, len(moves))
            begin = end
            yield names

    def _last(self, label: str, start: int, end: int, features: Sequence[Floats]) -> int:
        """Return the last token of the entity that begins at `start`, before `end`."""
        own, of_first, of_previous = features
        weights, bias = self._more[label]
        known = of_first[start] + self._bias
        for at in range(start + 1, end - 1):
            if _maxout(own[at] + known + of_previous[at - 1]) @ weights + bias <= 0:
                return at
        return end - 1


def _maxout(features: Floats) -> Floats:
    half = features.shape[-1] // 2
    return np.maximum(features[..., :half], features[..., half:])
