"""A BM25 index of Tantivy on disk: one folder per collection or tenant, shared by processes.

The index adds keyword search to a vector store that has none. Commits are atomic: if a writer is
killed at any moment, the last commit remains, and the kernel releases the writer's lock.
"""

import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tantivy
from filelock import FileLock, Timeout

from callslip.errors import CollectionNotFound, NotFound, StoreDown
from callslip.stores.fulltext.filters import (
    ID,
    PROPS,
    SCHEMA,
    TERMS,
    decode,
    filter_query,
    prefix,
    term,
)
from callslip.stores.fulltext.stored_terms import StoredTerms
from callslip.stores.properties.filters import Where
from callslip.stores.properties.terms import FLAG, NUMBER, TEXT, PropertyTerm, property_terms
from callslip.stores.records import RetrieverHit, Scalar
from callslip.stores.ties import best

MAX_QUERY_TERMS = 1024
"""A search uses only this many distinct terms, the first ones: 4 ms at 20,000 chunks."""

LOCK_SECONDS = 30.0
"""How long a writer waits for another one, which writes a batch in 20 ms and merges in seconds."""

_HEAP_BYTES = 15_000_000


@dataclass(frozen=True)
class Entry:
    """The indexed parts of a chunk: its analyzed terms and the properties that filters see."""

    chunk_id: str
    terms: str
    properties: Mapping[str, object]


class KeywordIndex:
    """The keyword index of one collection or tenant.

    Every method but `create` and `drop` raises `missing`, by default CollectionNotFound, if the
    index does not exist, and StoreDown if its files cannot be read. Methods that write raise
    StoreDown if another writer has the lock for more than LOCK_SECONDS.
    """

    def __init__(self, folder: Path, collection: str, missing: NotFound | None = None) -> None:
        self._folder = folder
        self._collection = collection
        self._missing = missing or CollectionNotFound(f"Collection {collection} does not exist.")
        self._opened: tantivy.Index | None = None
        self._stored = StoredTerms(folder / "terms.db")
        self._seen: tuple[tuple[int, int, int], tantivy.Searcher | None] = (0, 0, 0), None

    def create(self) -> None:
        """Create the index if it is missing. Idempotent, also between processes."""
        with self._lock():
            if not self._exists():
                self._folder.mkdir(parents=True, exist_ok=True)
                tantivy.Index(SCHEMA, path=str(self._folder), reuse=False)

    def drop(self) -> None:
        """Remove the index. Idempotent."""
        with self._lock():
            self._close()
            if self._folder.exists():
                shutil.rmtree(self._folder)

    def upsert(self, entries: Sequence[Entry]) -> None:
        """Write the entries in one commit. An entry with an existing id replaces the stored one."""
        documents = [(entry.chunk_id, _document(entry)) for entry in entries]
        with self._writer() as writer:
            for chunk_id, document in documents:
                writer.delete_documents_by_term(ID, chunk_id)
                writer.add_document(document)
            writer.commit()
            self._stored.put((e.chunk_id, e.terms, e.properties) for e in entries)

    def delete(self, chunk_ids: Iterable[str]) -> None:
        """Remove these entries in one commit."""
        ids = list(chunk_ids)
        with self._writer() as writer:
            self._stored.delete(ids)
            for chunk_id in ids:
                writer.delete_documents_by_term(ID, chunk_id)
            writer.commit()

    def delete_having(self, item: PropertyTerm) -> None:
        """Remove the entries that have a property term."""
        self.delete(self.ids_having(item))

    def search(self, terms: str, limit: int, where: Where | None) -> list[RetrieverHit]:
        """Find the best entries by BM25 (k1 = 1.2, b = .75), summed over the query's terms.

        A term that the query repeats counts as often. Scores are the same with and without a
        filter.
        """
        query = self._filtered(self._any_of(terms), where)
        searcher = self._searcher()

        def fetch(wanted: int) -> list[RetrieverHit]:
            results = searcher.search(query, min(wanted, searcher.num_docs + 1), count=False)
            return [RetrieverHit(searcher.doc(at)[ID][0], score) for score, at in results.hits]

        return best(fetch, limit)

    def ids(self, where: Where | None) -> list[str]:
        """Return the ids of all entries that match, in undefined order."""
        return self._ids(self._matching(where))

    def ids_among(self, chunk_ids: Sequence[str], where: Where) -> set[str]:
        """Return the ids among these whose entries match."""
        these = tantivy.Query.term_set_query(SCHEMA, ID, list(chunk_ids))
        return set(self._ids(self._filtered(these, where)))

    def terms(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        """Return the analyzed terms of these entries, by id. Ignores unknown ids."""
        self._index()
        with self._readable():
            return self._stored.get(chunk_ids)

    def properties(self, chunk_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the properties that filters see of these entries, by id. Ignores unknown ids.

        Entries that were written before the index stored properties are missing.
        """
        self._index()
        with self._readable():
            return self._stored.properties(chunk_ids)

    def values(self, name: str) -> list[str]:
        """Return every text value of a property in the index."""
        start = prefix(TEXT, name)
        results = self._searcher().terms_with_prefix(
            PROPS, start, filter_query=tantivy.Query.all_query()
        )
        return [text[len(start) :] for text, count in results if count]

    def ids_having(self, item: PropertyTerm) -> list[str]:
        """Return the ids of all entries that have a property term, in undefined order."""
        return self._ids(tantivy.Query.term_query(SCHEMA, PROPS, term(item), "basic"))

    def count(self, where: Where | None) -> int:
        """Count the entries that match."""
        results = self._searcher().search(self._matching(where), 1, count=True)
        return int(results.count)  # type: ignore[attr-defined]  # missing in the stubs of 0.27

    def groups(self, prop: str, where: Where | None) -> list[tuple[Scalar, int]]:
        """Count the matching entries for each value of a property, most frequent first."""
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

    def _any_of(self, terms: str) -> tantivy.Query:
        counted = list(Counter(terms.split()).items())[:MAX_QUERY_TERMS]
        queries = [
            tantivy.Query.boost_query(
                tantivy.Query.term_query(SCHEMA, TERMS, text, "freq"), float(count)
            )
            for text, count in counted
        ]
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])

    def _matching(self, where: Where | None) -> tantivy.Query:
        return filter_query(where) if where else tantivy.Query.all_query()

    def _filtered(self, query: tantivy.Query, where: Where | None) -> tantivy.Query:
        if where is None:
            return query
        both = (query, filter_query(where))
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, part) for part in both])

    def _searcher(self) -> tantivy.Searcher:
        """A searcher that sees every commit made before this call, by any process.

        A commit replaces `meta.json`. While the file is the same, the searcher is reused: a reload
        takes 40 µs and empties the cache of stored ids.
        """
        index = self._index()
        with self._readable():
            results = (self._folder / "meta.json").stat()
            committed = results.st_ino, results.st_mtime_ns, results.st_size
            seen, searcher = self._seen
            if searcher is None or committed != seen:
                index.reload()
                searcher = index.searcher()
                self._seen = committed, searcher
        return searcher

    def _index(self) -> tantivy.Index:
        if self._opened is None:
            with self._readable():
                opened = tantivy.Index.open(str(self._folder))
                opened.config_reader("manual")
            self._opened = opened
        return self._opened

    def _close(self) -> None:
        self._opened, self._seen = None, ((0, 0, 0), None)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn errors of the files into `missing` or StoreDown."""
        try:
            yield
        except (OSError, ValueError, sqlite3.Error) as error:
            self._close()
            if not self._exists():
                raise self._missing from error
            raise StoreDown(
                f"The keyword index of {self._collection} cannot be read: {error}"
            ) from error

    @contextmanager
    def _writer(self) -> Iterator[tantivy.IndexWriter]:
        """A writer that commits nothing by itself.

        Callers store terms after the commit that adds entries, and delete terms before the commit
        that deletes entries. So a kill in between never leaves the terms of a chunk that the index
        does not count.
        """
        index = self._index()
        with self._lock(), self._readable():
            writer = index.writer(_HEAP_BYTES, 1)
            try:
                yield writer
            finally:
                writer.wait_merging_threads()  # also releases Tantivy's own lock

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """One writer at a time. The lock file is outside the folder, so that it outlives a drop."""
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(f"{self._folder}.lock", timeout=LOCK_SECONDS, poll_interval=0.005):
                yield
        except Timeout as error:
            raise StoreDown(
                f"The keyword index of {self._collection} is being written to for too long."
            ) from error

    def _exists(self) -> bool:
        return (self._folder / "meta.json").exists()


def _document(entry: Entry) -> tantivy.Document:
    document = tantivy.Document()
    document.add_text(ID, entry.chunk_id)
    document.add_text(TERMS, " ".join(entry.terms.split()))
    for text in {term(item) for item in property_terms(entry.properties)}:
        document.add_text(PROPS, text)
    return document
