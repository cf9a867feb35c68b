"""One collection or tenant: its database, its snapshots, and the view that searches use."""

import logging
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from callslip.errors import StoreReadOnly
from callslip.stores.records import CollectionSchema
from callslip.stores.tfidf import cells
from callslip.stores.tfidf.database import Database
from callslip.stores.tfidf.grams import fit
from callslip.stores.tfidf.nearest import Vectors, lengths
from callslip.stores.tfidf.snapshot import (
    Block,
    SnapshotDamaged,
    discard,
    load,
    publish,
    save,
    vectors_file,
)
from callslip.stores.tfidf.table import TABLES, Keys, State, all_keys, state
from callslip.stores.tfidf.view import View, fitted, opened

SMALL = 500
"""Up to this number of chunks, a view is fitted after each change, in 40 ms, without a snapshot."""

DUE = 0.1
"""A refit is due if more than this share of the chunks was added or removed since the last fit.

Until then, a view adds the new chunks to the fit.
"""

OVERDUE = 0.5
"""If more than this share changed, a search refits first: no worker has maintained the store."""

ALWAYS = -1.0
"""In place of a share: refit even if nothing changed."""

REFIT_SECONDS = 600.0
"""How long a search waits for a refit by another process."""

_ROWS_PER_STEP = 1000

log = logging.getLogger(__name__)


class Partition:
    """The data of one collection or tenant. Threads share the object, processes the folder."""

    def __init__(self, folder: Path, schema: CollectionSchema) -> None:
        self.folder = folder
        self.schema = schema
        self.database = _database(folder, schema.name)
        self._view: View | None = None
        self._lock = threading.Lock()
        self._read_only = False

    @contextmanager
    def searching(self) -> Iterator[tuple[sqlite3.Connection, View]]:
        """The view at the newest state, and a connection that reads exactly that state."""
        while True:
            with self.database.reading() as connection:
                now = state(connection)
                overdue = now.rows > SMALL and _moved(now, OVERDUE) and not self._read_only
                view = None if overdue else self._current(connection, now)
                if view is not None:
                    yield connection, view
                    return
            try:
                if overdue:
                    self.refit(OVERDUE)
                elif now.snapshot is not None and not self._is_ahead(now):
                    self._give_up(now.snapshot)
            except StoreReadOnly:
                self._read_only = True

    def refit(self, share: float = 0.0, wait: float = REFIT_SECONDS) -> None:
        """Fit on all chunks and replace the snapshot, if more than this share of them changed.

        Does nothing if another process refits for longer than `wait` seconds. A kill at any moment
        leaves the old snapshot. Raises StoreReadOnly if the snapshot cannot be written.
        """
        try:
            with FileLock(self.folder / "refit.lock", timeout=wait):
                self._refit(share)
        except Timeout:
            return
        except OSError as error:
            raise StoreReadOnly(
                f"No snapshot of collection {self.schema.name} can be written"
                f" ({type(error).__name__})."
            ) from error

    def compact(self) -> None:
        """Fit anew and rewrite the database, so that nothing of deleted chunks remains."""
        self.refit(ALWAYS)
        self.database.rewrite()

    def is_due(self) -> bool:
        """Tell whether enough chunks were added or removed for a refit."""
        with self.database.reading() as connection:
            return _moved(state(connection), DUE)

    def close(self) -> None:
        """Close connections."""
        self.database.close()

    def is_outdated(self) -> bool:
        """Tell whether another process has removed the partition or the snapshot of the view."""
        view = self._view
        snapshot = view.state.snapshot if view else None
        return not (self.database.path.exists() and (self.folder / (snapshot or "")).exists())

    def _current(self, connection: sqlite3.Connection, now: State) -> View | None:
        """The view at this state; None if the view is at a later state or a snapshot is damaged."""
        with self._lock:
            view = self._view
            if view is None or view.state.changes < now.changes:
                view = self._made(connection, now, view)
                self._view = view or self._view
            return view if view and view.state.changes == now.changes else None

    def _made(self, connection: sqlite3.Connection, now: State, view: View | None) -> View | None:
        if now.snapshot is None or now.rows <= SMALL:
            return fitted(connection, now, self.schema)
        if view is None or view.state.snapshot != now.snapshot:
            try:
                model, block = load(self.folder / now.snapshot, self.schema)
            except SnapshotDamaged as error:
                log.warning("A snapshot of %s is damaged: %s", self.schema.name, error)
                return fitted(connection, now, self.schema) if self._read_only else None
            view = opened(connection, now, model, block)
        return view.moved_on(connection, now, self.schema)

    def _is_ahead(self, now: State) -> bool:
        return self._view is not None and self._view.state.changes > now.changes

    def _give_up(self, snapshot: str) -> None:
        """Discard a damaged snapshot, unless it was replaced already; the next search refits."""
        with self.database.writing() as connection:
            connection.execute(
                "UPDATE state SET changes = changes + 1, snapshot = NULL WHERE snapshot = ?",
                (snapshot,),
            )

    def _refit(self, share: float) -> None:
        with self.database.reading() as connection:
            before = state(connection)
            if share != ALWAYS and not _moved(before, share):
                return
            name = None
            if before.rows > SMALL:
                name = secrets.token_hex(8)
                discard(self.folder, before.snapshot)  # the drafts of refits that were killed
                try:
                    self._write(connection, name)
                except BaseException:
                    discard(self.folder, before.snapshot)  # it may have taken the last room
                    raise
        with self.database.writing() as connection:
            connection.execute(
                "UPDATE state SET changes = changes + 1, moved = moved - ?, snapshot = ?",
                (before.moved, name),
            )
            connection.execute("DELETE FROM gone")
            connection.execute(
                "DELETE FROM atoms WHERE NOT EXISTS (SELECT 1 FROM held WHERE atom = atoms.id)"
            )
        discard(self.folder, name)

    def _write(self, connection: sqlite3.Connection, name: str) -> None:
        draft = self.folder / f"{name}.draft"
        draft.mkdir()
        keys = all_keys(connection)
        terms = connection.execute("SELECT terms FROM chunks ORDER BY key")
        model, postings = fit(text for (text,) in terms)
        save(draft, model, Block(keys, postings, self._write_vectors(connection, draft, keys)))
        publish(draft, self.folder / name)

    def _write_vectors(
        self, connection: sqlite3.Connection, draft: Path, keys: Keys
    ) -> Mapping[str, Vectors]:
        names = {"": None, **self.schema.named}
        written = {}
        for name in names:
            having = "FROM vectors WHERE name = ?"
            (number,) = connection.execute(f"SELECT count(*) {having}", (name,)).fetchone()
            shape = (number, self.schema.vector(name).dimension)
            path = vectors_file(draft, names, name)
            rows = _new_rows(path, shape)
            cursor = connection.execute(f"SELECT chunk, vector {having} ORDER BY chunk", (name,))
            slots, at = np.empty(number, np.int64), 0
            while some := cursor.fetchmany(_ROWS_PER_STEP):
                to = at + len(some)
                slots[at:to] = np.searchsorted(keys, [chunk for chunk, _ in some])
                blobs = b"".join(blob for _, blob in some)
                rows[at:to] = np.frombuffer(blobs, "<f4").reshape(len(some), -1)
                at = to
            written[name] = Vectors(slots, rows, lengths(rows))
            rows.flush()
            if number >= cells.MANY:
                written[name] = _by_cell(written[name], path)
        return written


def _by_cell(vectors: Vectors, path: Path) -> Vectors:
    """Make cells and replace the file of the vectors by one in the order of the cells."""
    made, order = cells.grouped(vectors.rows, vectors.lengths)
    draft = path.with_suffix(".draft")
    rows = _new_rows(draft, vectors.rows.shape)
    for at in range(0, len(order), _ROWS_PER_STEP):
        rows[at : at + _ROWS_PER_STEP] = vectors.rows[order[at : at + _ROWS_PER_STEP]]
    rows.flush()
    draft.replace(path)
    return Vectors(vectors.slots[order], rows, vectors.lengths[order], made)


def _new_rows(path: Path, shape: tuple[int, ...]) -> np.memmap[Any, np.dtype[np.float32]]:
    """Make a mapped file for rows, all of whose room on the disk is taken.

    A write to a map for which the disk has no room ends the process (SIGBUS). Raises OSError.
    """
    rows = np.lib.format.open_memmap(path, mode="w+", dtype="<f4", shape=shape)
    if hasattr(os, "posix_fallocate"):  # macOS has none
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return rows


def make_partition(folder: Path, collection: str) -> None:
    """Create an empty database in a new folder."""
    folder.mkdir()
    _database(folder, collection).create(TABLES)


def _database(folder: Path, collection: str) -> Database:
    return Database(folder / "chunks.db", f"collection {collection}")


def _moved(now: State, share: float) -> bool:
    """Tell whether more than this share of the chunks changed since the fit, or no fit is stored.

    A collection of at most SMALL chunks needs no snapshot: then tell whether one is stored.
    """
    if now.rows <= SMALL:
        return now.snapshot is not None
    return now.snapshot is None or now.moved > share * now.rows
