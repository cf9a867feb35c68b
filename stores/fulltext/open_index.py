"""The open files of a keyword index, which threads share."""

from pathlib import Path

import tantivy

from callslip.stores.fulltext.stored_terms import StoredTerms
from callslip.stores.open_files import OpenFiles

MOST_OPEN = 40
"""The most indexes that a process keeps open, those that were used last.

An open index has at most 2 · MOST_READERS + 2 = 18 file descriptors, one of them for its writer,
and maps its other files without one: 40 indexes have 720. A thread that reads an index which is no
longer kept adds at most 2, so 16 threads leave 270 of 1,024 descriptors to the rest of the process.
An index that is opened again costs the first search in it 5 ms.
"""

META = "meta.json"
"""The file that each commit replaces."""

_Committed = tuple[int, int, int]


class OpenIndex:
    """An index, its newest searcher and what is stored beside it.

    Methods raise OSError or ValueError if the files cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._meta = folder / META
        self.index = tantivy.Index.open(str(folder))
        self.index.config_reader("manual")
        self.stored = StoredTerms(folder / "terms.db")
        self._seen: tuple[_Committed, tantivy.Searcher] | None = None

    def searcher(self) -> tantivy.Searcher:
        """A searcher that sees every commit made before this call, by any process.

        While no commit was made, the searcher is reused: a reload takes 40 µs and empties the
        cache of stored ids.
        """
        committed, seen = self._committed(), self._seen
        if seen is None or committed != seen[0]:
            self.index.reload()
            seen = self._seen = committed, self.index.searcher()
        return seen[1]

    def close(self) -> None:
        """Close the files that no thread uses; the others close with their last reference."""
        self.stored.close()

    def is_outdated(self) -> bool:
        """Tell whether another process has removed the index, or changed it since a search.

        The searcher of an earlier commit may have files that are removed.
        """
        try:
            committed, seen = self._committed(), self._seen
        except OSError:
            return True
        return seen is not None and committed != seen[0]

    def _committed(self) -> _Committed:
        results = self._meta.stat()
        return results.st_ino, results.st_mtime_ns, results.st_size


OpenIndexes = OpenFiles[Path, OpenIndex]
