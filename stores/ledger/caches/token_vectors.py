"""Vectors of each token of a passage, by model and text, for the late-interaction reranker."""

import time
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from sqlalchemy import bindparam, delete, select

from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.caches.vectors import (
    TOUCH_SECONDS,
    drop_surplus,
    keep_rows,
    text_hash,
    touch,
)

_T = schema.token_vectors.c
TokenMatrix = npt.NDArray[np.float32]

_LEVELS = 127
"""The levels of a component on each side of zero. Single bytes give the same rankings as half
floats, and take half the space (docs/quality.md)."""

_KNOWN = select(_T.text_hash, _T.tokens, _T.used_at).where(
    _T.model == bindparam("model"), _T.text_hash.in_(bindparam("hashes", expanding=True))
)


class TokenVectors:
    """The cache of token vectors; it can be lost without losing data.

    The rows of a removed document's texts are deleted with it, as those of `Vectors` are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, model: str, texts: Sequence[str]) -> dict[str, TokenMatrix]:
        """The cached matrices of these texts (some hundred at most), shape (tokens, dimension)."""
        by_hash = {text_hash(text): text for text in texts}
        if not by_hash:
            return {}
        with self._database.reading() as connection:
            rows = connection.execute(_KNOWN, {"model": model, "hashes": list(by_hash)}).all()
        before = time.time() - TOUCH_SECONDS
        stale = [(model, row.text_hash) for row in rows if row.used_at < before]
        if stale:
            touch(self._database, schema.token_vectors, stale)
        return {by_hash[row.text_hash]: _decoded(row.tokens) for row in rows}

    def put(self, model: str, vectors: Mapping[str, TokenMatrix]) -> None:
        """Store token vectors by text: shape (tokens, dimension) each."""
        encoded = {(model, text_hash(t)): {"tokens": _encoded(m)} for t, m in vectors.items()}
        keep_rows(self._database, schema.token_vectors, encoded)

    def trim(self, rows: int) -> int:
        """Delete rows whose text no chunk has, and all but the `rows` most recently used.

        A text without a chunk belongs to a document that was deleted while a search read it.
        Returns the number of deleted rows.
        """
        used = select(schema.chunks.c.text_hash)
        with self._database.writing() as connection:
            orphans = delete(schema.token_vectors).where(_T.text_hash.not_in(used))
            dropped = connection.execute(orphans).rowcount
        return dropped + drop_surplus(self._database, schema.token_vectors, rows)


def _encoded(matrix: TokenMatrix) -> bytes:
    """The dimension, and a row for each token: the scale as a float, the components as bytes."""
    rows = np.empty(len(matrix), _row(matrix.shape[1]))
    rows["scale"] = np.abs(matrix).max(axis=1, initial=1e-9) / _LEVELS
    rows["levels"] = np.round(matrix / rows["scale"][:, None])
    dimension = np.array(matrix.shape[1], "<u4").tobytes()
    return dimension + rows.tobytes()


def _decoded(content: bytes) -> TokenMatrix:
    (dimension,) = np.frombuffer(content, "<u4", 1)
    rows = np.frombuffer(content, _row(int(dimension)), offset=4)
    matrix: TokenMatrix = rows["levels"] * rows["scale"][:, None]
    return matrix


def _row(dimension: int) -> np.dtype[np.void]:
    return np.dtype([("scale", "<f4"), ("levels", "i1", (dimension,))])
