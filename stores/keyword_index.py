"""A BM25 index on disk, one folder per collection, shared by processes: Tantivy.

Beside a vector store without keyword search it is the other half of a store. Commits are atomic: a
writer killed at any moment leaves the last commit, and the kernel frees its lock.
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
from stores.atoms import FLAG, NUMBER, TEXT, Atom, atoms
from stores.filters import Where
from stores.kept_terms import KeptTerms
from stores.keyword_filter import ID, PROPS, SCHEMA, TERMS, decode, filter_query, prefix, term
from stores.records import LegHit, Scalar
from stores.ties import best

MAX_QUERY_TERMS = 1024
"""Distinct terms of a query that are searched for, the first ones: 4 ms at 20,000 chunks."""

LOCK_SECONDS = 30.0
"""How long a writer waits for another, which writes a batch in 20 ms, and merges in seconds."""

_HEAP_BYTES = 15_000_000


@dataclass(frozen=True)
class Entry:
    """What is indexed of a chunk: its analyzed terms and the properties that filters see."""

    chunk_id: str
    terms: str
    properties: Mapping[str, object]


class KeywordIndex:
    """The keyword index of one collection.

    Every method but `create` and `drop` raises CollectionNotFound where there is none, and
    StoreDown where its files cannot be read or another writer holds it for too long.
    """

    def __init__(self, folder: Path, collection: str, missing: NotFound | None = None) -> None:
        self._folder = folder
        self._collection = collection
        self._missing = missing or CollectionNotFound(f"Collection {collection} does not exist.")
        self._opened: tantivy.Index | None = None
        self._kept = KeptTerms(folder / "terms.db")
        self._seen: tuple[tuple[int, int, int], tantivy.Searcher | None] = (0, 0, 0), None

    def create(self) -> None:
        """Make the index where it is missing. Idempotent, also between processes."""
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
        """Write the entries in one commit; the same id again replaces."""
        documents = [(entry.chunk_id, _document(entry)) for entry in entries]
        with self._writer() as writer:
            for chunk_id, document in documents:
                writer.delete_documents_by_term(ID, chunk_id)
                writer.add_document(document)
            writer.commit()
            self._kept.put((e.chunk_id, e.terms, e.properties) for e in entries)

    def delete(self, chunk_ids: Iterable[str]) -> None:
        """Remove these entries in one commit."""
        ids = list(chunk_ids)
        with self._writer() as writer:
            self._kept.delete(ids)
            for chunk_id in ids:
                writer.delete_documents_by_term(ID, chunk_id)
            writer.commit()

    def delete_having(self, item: Atom) -> None:
        """Remove the entries that have a property."""
        self.delete(self.ids_having(item))

    def search(self, terms: str, limit: int, where: Where | None) -> list[LegHit]:
        """Find the best entries by BM25 (k1 = 1.2, b = .75), summed over the query's terms.

        A term that the query repeats counts as often. Scores are the same with and without a
        filter.
        """
        query = self._filtered(self._any_of(terms), where)
        searcher = self._searcher()

        def fetch(wanted: int) -> list[LegHit]:
            found = searcher.search(query, min(wanted, searcher.num_docs + 1), count=False)
            return [LegHit(searcher.doc(at)[ID][0], score) for score, at in found.hits]

        return best(fetch, limit)

    def ids(self, where: Where | None) -> list[str]:
        """Give the ids of all entries that match, in no order."""
        return self._ids(self._matching(where))

    def ids_among(self, chunk_ids: Sequence[str], where: Where) -> set[str]:
        """Give those of these ids whose entries match."""
        these = tantivy.Query.term_set_query(SCHEMA, ID, list(chunk_ids))
        return set(self._ids(self._filtered(these, where)))

    def terms(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        """Give the analyzed terms of these entries, in any order."""
        self._index()
        with self._readable():
            return self._kept.get(chunk_ids)

    def properties(self, chunk_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Give what filters see of these entries, in any order.

        An index that was written before they were kept does not know them.
        """
        self._index()
        with self._readable():
            return self._kept.properties(chunk_ids)

    def values(self, name: str) -> list[str]:
        """Give every text that a property has on some entry."""
        start = prefix(TEXT, name)
        found = self._searcher().terms_with_prefix(
            PROPS, start, filter_query=tantivy.Query.all_query()
        )
        return [text[len(start) :] for text, count in found if count]

    def ids_having(self, item: Atom) -> list[str]:
        """Give the ids of all entries that have a property, in no order."""
        return self._ids(tantivy.Query.term_query(SCHEMA, PROPS, term(item), "basic"))

    def count(self, where: Where | None) -> int:
        """Count the entries that match."""
        found = self._searcher().search(self._matching(where), 1, count=True)
        return int(found.count)  # type: ignore[attr-defined]  # missing in the stubs of 0.27

    def groups(self, prop: str, where: Where | None) -> list[tuple[Scalar, int]]:
        """Count the matching entries under each value of a property, most frequent first."""
        searcher, query = self._searcher(), self._matching(where)
        found: Counter[tuple[str, Scalar]] = Counter()
        for kind in (TEXT, NUMBER, FLAG):
            for mark in (kind, kind.upper()):
                start = prefix(mark, prop)
                for text, count in searcher.terms_with_prefix(PROPS, start, filter_query=query):
                    found[kind, decode(mark, text[len(start) :])] += count
        ranked = sorted(found.items(), key=lambda group: (-group[1], group[0]))
        return [(value, count) for (_, value), count in ranked if count]

    def _ids(self, query: tantivy.Query) -> list[str]:
        searcher = self._searcher()
        found = searcher.search(query, searcher.num_docs + 1, count=False)
        return [searcher.doc(at)[ID][0] for _, at in found.hits]

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
        """See every commit made before now, by whichever process.

        A commit puts another `meta.json` in place. While it is the same one, so is the searcher:
        a reload takes 40 µs and empties the cache of stored ids.
        """
        index = self._index()
        with self._readable():
            found = (self._folder / "meta.json").stat()
            committed = found.st_ino, found.st_mtime_ns, found.st_size
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
        """Say what is wrong with the files in terms of the collection."""
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

        Terms are kept after a commit that adds and dropped before one that deletes: so a kill in
        between never leaves terms of a chunk that no count shows.
        """
        index = self._index()
        with self._lock(), self._readable():
            writer = index.writer(_HEAP_BYTES, 1)
            try:
                yield writer
            finally:
                writer.wait_merging_threads()  # also gives up Tantivy's own lock

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """One writer at a time; beside the folder, so that it outlives a drop."""
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
    for text in {term(item) for item in atoms(entry.properties)}:
        document.add_text(PROPS, text)
    return document
