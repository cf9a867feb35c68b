"""A BM25 index of Tantivy on disk: one folder per collection or tenant, shared by processes.

The index adds keyword search to a vector store that has none. Commits are atomic: if a writer is
killed at any moment, the last commit remains, and the kernel releases the writer's lock.
"""

import json
import logging
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tantivy
from filelock import FileLock, Timeout

from callslip.errors import CollectionNotFound, KeywordsDown, StoreReadOnly
from callslip.stores.disk import is_disk_full
from callslip.stores.fulltext.contract import (
    LOCK_SECONDS,
    Check,
    Entry,
    KeywordIndexes,
    Missing,
    Reservable,
)
from callslip.stores.fulltext.filters import (
    ID,
    PROPS,
    SCHEMA,
    TERMS,
    Clause,
    decode,
    filter_query,
    narrowed,
    prefix,
    term,
)
from callslip.stores.fulltext.open_index import META, MOST_OPEN, OpenIndex, OpenIndexes
from callslip.stores.fulltext.stored_terms import StoredTerms
from callslip.stores.properties.filters import Where
from callslip.stores.properties.terms import FLAG, NUMBER, TEXT, PropertyTerm, property_terms
from callslip.stores.records import RetrieverHit, Scalar
from callslip.stores.ties import best

log = logging.getLogger(__name__)

MAX_QUERY_TERMS = 1024
"""A search uses only this many distinct terms, the first ones: 4 ms at 20,000 chunks."""

_HEAP_BYTES = 15_000_000

_FULL = ("No space left", "disk is full")
"""In the messages of Tantivy and of SQLite."""


class KeywordFolder(KeywordIndexes):
    """A folder with the index of each collection and tenant, which processes share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened = OpenIndexes(MOST_OPEN)

    def of(self, name: str, collection: str, missing: Missing) -> "KeywordIndex":
        return KeywordIndex(self._folder / name, collection, missing, self._opened)

    def close(self) -> None:
        """Close the indexes. A later use opens an index again."""
        self._opened.close_all()


class KeywordIndex(Reservable):
    """The keyword index of one collection or tenant in a folder.

    An index that does not exist is by default a CollectionNotFound. Methods that write raise
    KeywordsDown if another writer has the lock for more than LOCK_SECONDS. `opened` has the open
    files of all indexes of a process.
    """

    def __init__(
        self,
        folder: Path,
        collection: str,
        missing: Missing | None = None,
        opened: OpenIndexes | None = None,
    ) -> None:
        self._folder = folder
        self._collection = collection
        self._missing = missing or (
            lambda: CollectionNotFound(f"Collection {collection} does not exist.")
        )
        self._opened = opened or OpenIndexes(MOST_OPEN)

    def create(self) -> None:
        with self._lock():
            if not self._exists():
                self._folder.mkdir(parents=True, exist_ok=True)
                tantivy.Index(SCHEMA, path=str(self._folder), reuse=False)

    def drop(self) -> None:
        with self._lock():
            self._opened.close(self._folder)
            if self._folder.exists():
                shutil.rmtree(self._folder)

    def upsert(self, entries: Sequence[Entry]) -> None:
        """Write the entries in one commit. An entry with an existing id replaces the stored one."""
        documents = [(entry.chunk_id, _document(entry)) for entry in entries]
        with self._writer() as (writer, stored):
            for chunk_id, document in documents:
                writer.delete_documents_by_term(ID, chunk_id)
                writer.add_document(document)
            writer.commit()
            stored.put((e.chunk_id, e.terms, e.properties, e.copy) for e in entries)

    def delete(self, chunk_ids: Iterable[str]) -> None:
        """Remove these entries in one commit."""
        ids = list(chunk_ids)
        with self._writer() as (writer, stored):
            stored.delete(ids)
            for chunk_id in ids:
                writer.delete_documents_by_term(ID, chunk_id)
            writer.commit()

    def compact(self) -> None:
        # Tantivy itself merges the segments of deleted entries only much later.
        with self._writer() as (writer, stored):
            ids = set(self.ids(None))  # within the lock: nobody adds or deletes entries meanwhile
            writer.delete_all_documents()
            for chunk_id, terms, properties in stored.all():
                if chunk_id in ids:
                    writer.add_document(_document(Entry(chunk_id, terms, properties)))
                    ids.remove(chunk_id)
            if old := stored.get(sorted(ids)):
                writer.rollback()
                log.warning(
                    "the keyword index of %s keeps deleted terms: %d entries have no properties",
                    self._collection,
                    len(old),
                )
            else:
                writer.commit()
                writer.garbage_collect_files()
            stored.rewrite()

    @contextmanager
    def undisturbed(self) -> Iterator[Check]:
        with self._lock(".compact.lock"):
            yield lambda: None

    def reserve(self, holder: str, seconds: float, *, again: bool = False) -> bool:
        """Reserve the index in a file, so that the reservation outlives the service.

        A service that has just started knows who may still compact, and grants what is free.
        """
        with self._lock(".reserved.lock"):
            by, until, longest = self._reserved()
            left = until - time.time()  # more than `longest` after the clock was set back
            if by != holder and (again or 0 < left <= longest):
                return False
            file = self._reserved_file()
            draft = file.with_suffix(".draft")
            draft.write_text(json.dumps([holder, time.time() + seconds, seconds]), encoding="utf-8")
            draft.replace(file)
            return True

    def release(self, holder: str) -> None:
        with self._lock(".reserved.lock"):
            if self._reserved()[0] == holder:
                self._reserved_file().unlink()

    def _reserved(self) -> tuple[str, float, float]:
        """The holder of the last reservation, the time of its end and its seconds."""
        try:
            by, until, seconds = json.loads(self._reserved_file().read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):  # ValueError: a power loss emptied the file
            return "", 0.0, 0.0
        return by, until, seconds

    def _reserved_file(self) -> Path:
        return Path(f"{self._folder}.reserved.json")

    def search(self, terms: str, limit: int, where: Where | None) -> list[RetrieverHit]:
        query = narrowed(self._any_of(terms), where)
        searcher = self._searcher()

        def fetch(wanted: int) -> list[RetrieverHit]:
            results = searcher.search(query, min(wanted, searcher.num_docs + 1), count=False)
            return [RetrieverHit(searcher.doc(at)[ID][0], score) for score, at in results.hits]

        return best(fetch, limit)

    def ids(self, where: Where | None) -> list[str]:
        return self._ids(self._matching(where))

    def ids_among(self, chunk_ids: Sequence[str], where: Where) -> set[str]:
        these = tantivy.Query.term_set_query(SCHEMA, ID, list(chunk_ids))
        return set(self._ids(narrowed([(tantivy.Occur.Must, these)], where)))

    def terms(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        stored = self._index().stored
        with self._readable():
            return stored.get(chunk_ids)

    def copies(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        stored = self._index().stored
        with self._readable():
            return stored.copies(chunk_ids)

    def properties(self, chunk_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        stored = self._index().stored
        with self._readable():
            return stored.properties(chunk_ids)

    def values(self, name: str) -> list[str]:
        start = prefix(TEXT, name)
        results = self._searcher().terms_with_prefix(
            PROPS, start, filter_query=tantivy.Query.all_query()
        )
        return [text[len(start) :] for text, count in results if count]

    def ids_having(self, item: PropertyTerm) -> list[str]:
        return self._ids(tantivy.Query.term_query(SCHEMA, PROPS, term(item), "basic"))

    def count(self, where: Where | None) -> int:
        results = self._searcher().search(self._matching(where), 1, count=True)
        return int(results.count)  # type: ignore[attr-defined]  # missing in the stubs of 0.27

    def groups(self, prop: str, where: Where | None) -> list[tuple[Scalar, int]]:
        searcher, query = self._searcher(), self._matching(where)
        results: Counter[tuple[str, Scalar]] = Counter()
        for kind in (TEXT, NUMBER, FLAG):
            for mark in (kind, kind.upper()):
                start = prefix(mark, prop)
                for text, count in searcher.terms_with_prefix(PROPS, start, filter_query=query):
                    results[kind, decode(mark, text[len(start) :])] += count
        ranked = sorted(results.items(), key=lambda group: (-group[1], group[0]))
        return [(value, count) for (_, value), count in ranked if count]

    def _ids(self, query: tantivy.Query) -> list[str]:
        searcher = self._searcher()
        results = searcher.search(query, searcher.num_docs + 1, count=False)
        return [searcher.doc(at)[ID][0] for _, at in results.hits]

    def _any_of(self, terms: str) -> list[Clause]:
        counted = list(Counter(terms.split()).items())[:MAX_QUERY_TERMS]
        queries = (
            tantivy.Query.boost_query(
                tantivy.Query.term_query(SCHEMA, TERMS, text, "freq"), float(count)
            )
            for text, count in counted
        )
        return [(tantivy.Occur.Should, query) for query in queries]

    def _matching(self, where: Where | None) -> tantivy.Query:
        return filter_query(where) if where else tantivy.Query.all_query()

    def _searcher(self) -> tantivy.Searcher:
        index = self._index()
        with self._readable():
            return index.searcher()

    def _index(self) -> OpenIndex:
        with self._readable():
            return self._opened.get(self._folder, lambda: OpenIndex(self._folder))

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn errors of the files into `missing` or KeywordsDown."""
        try:
            yield
        except (OSError, ValueError, sqlite3.Error) as error:
            self._opened.close(self._folder)
            if not self._exists():
                raise self._missing() from error
            if is_disk_full(error) or any(sign in str(error) for sign in _FULL):
                raise StoreReadOnly(
                    f"The keyword index of {self._collection} takes nothing: its disk is full."
                ) from error
            raise KeywordsDown(
                f"The keyword index of {self._collection} cannot be read: {error}"
            ) from error

    @contextmanager
    def _writer(self) -> Iterator[tuple[tantivy.IndexWriter, StoredTerms]]:
        """A writer that commits nothing by itself, and what is stored beside the index.

        Callers store terms after the commit that adds entries, and delete terms before the commit
        that deletes entries. So a kill in between never leaves the terms of a chunk that the index
        does not count.
        """
        index = self._index()
        with self._lock(), self._readable():
            writer = index.index.writer(_HEAP_BYTES, 1)
            try:
                yield writer, index.stored
            finally:
                writer.wait_merging_threads()  # also releases Tantivy's own lock

    @contextmanager
    def _lock(self, suffix: str = ".lock") -> Iterator[None]:
        """One writer at a time. The lock file is outside the folder, so that it outlives a drop."""
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            path = f"{self._folder}{suffix}"
            with FileLock(path, timeout=LOCK_SECONDS, poll_interval=0.005):
                yield
        except Timeout as error:
            raise KeywordsDown(
                f"The keyword index of {self._collection} is being written to for too long."
            ) from error
        except OSError as error:  # of the lock's file or a folder: of the index, `_readable` has it
            kind = StoreReadOnly if is_disk_full(error) else KeywordsDown
            raise kind(
                f"The keyword index of {self._collection} cannot be written: {error.strerror}"
            ) from error

    def _exists(self) -> bool:
        return (self._folder / META).exists()


def _document(entry: Entry) -> tantivy.Document:
    document = tantivy.Document()
    document.add_text(ID, entry.chunk_id)
    document.add_text(TERMS, " ".join(entry.terms.split()))
    for text in {term(item) for item in property_terms(entry.properties)}:
        document.add_text(PROPS, text)
    return document
