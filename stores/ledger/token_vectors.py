"""Vectors of each token of a passage, by model and text, for the reranker that compares them."""

import time
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from sqlalchemy import bindparam, delete, func, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from stores.ledger import schema
from stores.ledger.database import Database
from stores.ledger.vectors import TOUCH_SECONDS, text_hash

_T = schema.token_vectors.c
TokenMatrix = npt.NDArray[np.float32]

_LEVELS = 127
"""Of a component, on each side of zero: whole bytes rank as half floats do and take half the
room (docs/quality.md)."""

_KNOWN = select(_T.text_hash, _T.tokens, _T.used_at).where(
    _T.model == bindparam("model"), _T.text_hash.in_(bindparam("hashes", expanding=True))
)


class TokenVectors:
    """The cache of token vectors; losing it costs time, nothing else.

    What a removed document's text gave goes with it, as its rows of `Vectors` do.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, model: str, texts: Sequence[str]) -> dict[str, TokenMatrix]:
        """The known ones among these texts, at most some hundred: shapes (tokens, dimension)."""
        by_hash = {text_hash(text): text for text in texts}
        if not by_hash:
            return {}
        with self._database.reading() as connection:
            rows = connection.execute(_KNOWN, {"model": model, "hashes": list(by_hash)}).all()
        before = time.time() - TOUCH_SECONDS
        stale = [row.text_hash for row in rows if row.used_at < before]
        if stale:
            with self._database.writing() as connection:
                connection.execute(
                    update(schema.token_vectors)
                    .where(_T.model == model, _T.text_hash.in_(stale))
                    .values(used_at=time.time())
                )
        return {by_hash[row.text_hash]: _decoded(row.tokens) for row in rows}

    def put(self, model: str, vectors: Mapping[str, TokenMatrix]) -> None:
        """Keep token vectors by text: shapes (tokens, dimension)."""
        if not vectors:
            return
        now = time.time()
        dialect = sqlite if self._database.is_sqlite else postgresql
        encoded = {text_hash(text): _encoded(matrix) for text, matrix in vectors.items()}
        rows = [
            {"model": model, "text_hash": key, "tokens": content, "used_at": now}
            for key, content in sorted(encoded.items())  # one order, so that no two deadlock
        ]
        with self._database.writing() as connection:
            connection.execute(dialect.insert(schema.token_vectors).on_conflict_do_nothing(), rows)

    def trim(self, rows: int) -> int:
        """Drop those whose text no chunk has, and all but the `rows` most recently used.

        A text without a chunk is one whose document was deleted while a search read it. Returns
        how many were dropped.
        """
        held = select(schema.chunks.c.text_hash)
        key = tuple_(_T.text_hash, _T.model)
        with self._database.writing() as connection:
            orphans = delete(schema.token_vectors).where(_T.text_hash.not_in(held))
            dropped = connection.execute(orphans).rowcount
            kept = connection.scalar(select(func.count()).select_from(schema.token_vectors)) or 0
            if kept > rows:
                oldest = select(_T.text_hash, _T.model).order_by(_T.used_at).limit(kept - rows)
                surplus = delete(schema.token_vectors).where(key.in_(oldest))
                dropped += connection.execute(surplus).rowcount
        return dropped


def _encoded(matrix: TokenMatrix) -> bytes:
    """A row for each token: its scale as a float, its components as whole bytes."""
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
