"""The data that a process searches: a fit, and the chunks added or removed since, at one state."""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from callslip.stores.metrics import Metric
from callslip.stores.properties.filters import Where
from callslip.stores.records import CollectionSchema, Vector
from callslip.stores.tfidf.filters import Mask, mask, translate
from callslip.stores.tfidf.grams import UNKNOWN, Model, count, fit, joined, least_of_best
from callslip.stores.tfidf.nearest import Floats, Part, Slots, Vectors, nearest, parts_near
from callslip.stores.tfidf.snapshot import Block
from callslip.stores.tfidf.table import Keys, State, all_keys

_CACHED_MASKS = 64
"""The most filters whose masks are cached until the next change: one byte per chunk each."""


@dataclass(frozen=True)
class View:
    """The searchable chunks at one state; immutable except for `masks` and `beyond`.

    A chunk's slot is its position in `keys`, which are ascending; `alive` is false for removed
    chunks. The first block has the chunks of the fit, the other blocks the chunks added since;
    `beyond` has the numbers of the words that are not in the fit. Scores use the document
    frequencies of the fit until the next fit. `seen` is the number of the last deletion that the
    view includes.
    """

    state: State
    seen: int
    model: Model
    beyond: dict[str, int]
    blocks: tuple[Block, ...]
    keys: Keys
    alive: Mask
    masks: dict[str, Mask] = field(default_factory=dict)

    def passing(self, connection: sqlite3.Connection, where: Where | None) -> Mask:
        """For each slot, whether its chunk is alive and passes the filter."""
        if where is None:
            return self.alive
        name = repr(where)  # in a dictionary, True and 1 are the same key
        result = self.masks.get(name)
        if result is None:
            result = mask(connection, translate(where), self.keys) & self.alive
            if len(self.masks) >= _CACHED_MASKS:
                self.masks.clear()
            self.masks[name] = result
        return result

    def by_terms(self, terms: str, limit: int, passing: Mask) -> tuple[Slots, Floats]:
        """The slots and scores of the best chunks by TF-IDF, with all ties, in undefined order."""
        counted = count([terms], self._number)
        grams, times = counted.grams, counted.matrix.toarray()[0].astype(np.float64)
        known = [block.postings.holds(grams) for block in self.blocks]
        weights = times * self.model.idf_of(grams) * np.any(known, axis=0)
        length = np.linalg.norm(weights) or 1.0
        offset, slots, scores = 0, np.empty(0, np.int64), np.empty(0)
        for block in self.blocks:
            among = passing[offset : offset + len(block.keys)]
            rows, its = block.postings.best(grams, weights / length, limit, among)
            slots = np.concatenate([slots, rows + offset])
            scores = np.concatenate([scores, its])
            offset += len(block.keys)
        best = scores >= least_of_best(scores, limit)
        return slots[best], scores[best]

    def by_vector(
        self,
        metric: Metric,
        name: str,
        query: Vector,
        limit: int,
        passing: Mask,
        *,
        exact: bool,
    ) -> tuple[Slots, Floats]:
        """The slots and scores of chunks with a vector of this name, in undefined order.

        The nearest `limit` chunks are among them if `exact`, else nearly all of them.
        """
        parts: list[Part] = []
        offset = 0
        for block in self.blocks:
            vectors = block.vectors[name]
            if exact:
                vectors = replace(vectors, cells=None)
            among = passing[offset : offset + len(block.keys)]
            parts += parts_near(metric, query, vectors, limit, among, offset)
            offset += len(block.keys)
        return nearest(metric, query, parts, limit)

    def moved_on(
        self, connection: sqlite3.Connection, state: State, schema: CollectionSchema
    ) -> "View":
        """The view at a later state with the same snapshot."""
        gone = connection.execute("SELECT number, chunk FROM gone WHERE number > ?", (self.seen,))
        numbers, lost = np.array(gone.fetchall(), np.int64).reshape(-1, 2).T
        keys, terms = chunks_since(connection, self.state.next_key)
        blocks, alive = self.blocks, self.alive
        if len(keys):
            postings = self.model.weighed(count(terms, self._learned))
            fresh = Block(keys, postings, read_vectors(connection, keys, schema))
            blocks = _settled((*blocks, fresh))
            alive = np.concatenate([alive, np.ones(len(keys), np.bool_)])
        everything = np.concatenate([self.keys, keys])
        return replace(
            self,
            state=state,
            seen=int(numbers.max(initial=self.seen)),
            blocks=blocks,
            keys=everything,
            alive=_without(alive, everything, lost),
            masks={},
        )

    def _number(self, word: str) -> int:
        return self.model.words.get(word, self.beyond.get(word, UNKNOWN))

    def _learned(self, word: str) -> int:
        number = self._number(word)
        if number == UNKNOWN:
            number = self.beyond[word] = len(self.model.words) + len(self.beyond)
        return number


def fitted(connection: sqlite3.Connection, state: State, schema: CollectionSchema) -> View:
    """A view of all chunks with a new fit in memory."""
    keys, terms = chunks_since(connection, 0)
    model, postings = fit(terms)
    block = Block(keys, postings, read_vectors(connection, keys, schema))
    alive = np.ones(len(keys), np.bool_)
    return View(replace(state, snapshot=None), 0, model, {}, (block,), keys, alive)


def opened(connection: sqlite3.Connection, state: State, model: Model, block: Block) -> View:
    """A view of a snapshot, which may have been fitted at an earlier state."""
    (seen,) = connection.execute("SELECT coalesce(max(number), 0) FROM gone").fetchone()
    alive = np.isin(block.keys, all_keys(connection), assume_unique=True)
    at_fit = replace(state, next_key=int(block.keys[-1]) + 1)
    return View(at_fit, seen, model, {}, (block,), block.keys, alive)


def chunks_since(connection: sqlite3.Connection, key: int) -> tuple[Keys, list[str]]:
    """The keys, ascending, and the terms of all chunks whose key is at least `key`."""
    rows = connection.execute("SELECT key, terms FROM chunks WHERE key >= ? ORDER BY key", (key,))
    result = rows.fetchall()
    return np.array([key for key, _ in result], np.int64), [terms for _, terms in result]


def read_vectors(
    connection: sqlite3.Connection, keys: Keys, schema: CollectionSchema
) -> Mapping[str, Vectors]:
    """The vectors of these chunks by vector name. `keys` must be the last keys of the database."""
    first = int(keys[0]) if len(keys) else 0
    result = {}
    for name in {"": None, **schema.named}:
        rows = connection.execute(
            "SELECT chunk, vector FROM vectors WHERE chunk >= ? AND name = ? ORDER BY chunk",
            (first, name),
        ).fetchall()
        slots = np.searchsorted(keys, np.array([chunk for chunk, _ in rows], np.int64))
        vectors_read = np.frombuffer(b"".join(blob for _, blob in rows), "<f4")
        shape = (len(rows), schema.vector(name).dimension)
        result[name] = Vectors.of(slots, vectors_read.reshape(shape).astype(np.float32, copy=False))
    return result


def _without(alive: Mask, keys: Keys, lost: Keys) -> Mask:
    """A copy of the mask that is false for these keys; `keys` are ascending."""
    result = alive.copy()
    if len(keys):
        at = np.minimum(np.searchsorted(keys, lost), len(keys) - 1)
        result[at[keys[at] == lost]] = False
    return result


def _settled(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Join small blocks after the first until each is more than twice as long as the next.

    So the number of blocks stays small, and each chunk is copied few times.
    """
    while len(blocks) > 2 and len(blocks[-2].keys) <= 2 * len(blocks[-1].keys):
        blocks = (*blocks[:-2], _together(blocks[-2:]))
    return blocks


def _together(blocks: Iterable[Block]) -> Block:
    first, second = blocks
    offset = len(first.keys)
    vectors = {}
    for name, one in first.vectors.items():
        other = second.vectors[name]
        vectors[name] = Vectors(
            np.concatenate([one.slots, other.slots + offset]),
            np.concatenate([one.rows, other.rows]),
            np.concatenate([one.lengths, other.lengths]),
        )
    return Block(
        np.concatenate([first.keys, second.keys]),
        joined([first.postings, second.postings]),
        vectors,
    )
