"""The contract of keyword indexes: a folder of this machine, or a service that has the folder."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from callslip.errors import CallslipError
from callslip.stores.properties.filters import Where
from callslip.stores.properties.terms import PropertyTerm
from callslip.stores.records import RetrieverHit, Scalar

LOCK_SECONDS = 30.0
"""Seconds that a writer waits for another one, which writes a batch in .02 s."""

Missing = Callable[[], CallslipError]
"""Makes the error for an index that does not exist."""

Check = Callable[[], None]
"""Raises KeywordsDown if the block of `undisturbed` may no longer be alone."""


@dataclass(frozen=True)
class Entry:
    """The indexed parts of a chunk: its analyzed terms and the properties that filters see.

    `copy` is the chunk as text, from which it can be read without the server that has its vector.
    """

    chunk_id: str
    terms: str
    properties: Mapping[str, object]
    copy: str = ""


class Keywords(ABC):
    """The keyword index of one collection or tenant.

    Every method but `create` and `drop` raises the error of `Missing` if the index does not exist.
    Every method raises KeywordsDown if the index or its service cannot be used, StoreReadOnly if
    its disk is full. Each call may be repeated.
    """

    @abstractmethod
    def create(self) -> None:
        """Create the index if it is missing. Idempotent, also between processes."""

    @abstractmethod
    def drop(self) -> None:
        """Remove the index. Idempotent."""

    @abstractmethod
    def upsert(self, entries: Sequence[Entry]) -> None:
        """Write the entries. An entry with an existing id replaces the stored one."""

    @abstractmethod
    def delete(self, chunk_ids: Iterable[str]) -> None:
        """Remove these entries."""

    @abstractmethod
    def compact(self) -> None:
        """Write the index and what is stored with it anew: nothing of deleted entries remains.

        An index with entries from before properties were stored stays as it is.
        """

    @abstractmethod
    def undisturbed(self) -> AbstractContextManager[Check]:
        """One compaction, deletion or drop of what belongs to this index at a time.

        It is for the vectors of the same scope, which have no lock of their own: a row that is
        deleted while its table is written anew would come back. Others wait LOCK_SECONDS, then
        raise KeywordsDown. The block calls the check before a step that would undo what another
        process did meanwhile. At its end it raises KeywordsDown if it was not alone, so that its
        caller repeats it.
        """

    @abstractmethod
    def search(self, terms: str, limit: int, where: Where | None) -> list[RetrieverHit]:
        """Find the best entries by BM25 (k1 = 1.2, b = .75), summed over the query's terms.

        A term that the query repeats counts as often. Scores are the same with and without a
        filter.
        """

    @abstractmethod
    def ids(self, where: Where | None) -> list[str]:
        """Return the ids of all entries that match, in undefined order."""

    @abstractmethod
    def ids_among(self, chunk_ids: Sequence[str], where: Where) -> set[str]:
        """Return the ids among these whose entries match."""

    @abstractmethod
    def ids_having(self, item: PropertyTerm) -> list[str]:
        """Return the ids of all entries that have a property term, in undefined order."""

    @abstractmethod
    def terms(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        """Return the analyzed terms of these entries, by id. Ignores unknown ids."""

    @abstractmethod
    def copies(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        """Return the copies of these entries, by id. Ignores unknown ids and those without one."""

    @abstractmethod
    def properties(self, chunk_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the properties that filters see of these entries, by id. Ignores unknown ids.

        Entries that were written before the index stored properties are missing.
        """

    @abstractmethod
    def values(self, name: str) -> list[str]:
        """Return every text value of a property in the index."""

    @abstractmethod
    def count(self, where: Where | None) -> int:
        """Count the entries that match."""

    @abstractmethod
    def groups(self, prop: str, where: Where | None) -> list[tuple[Scalar, int]]:
        """Count the matching entries for each value of a property, most frequent first."""


class Reservable(Keywords):
    """An index that clients on other machines reserve, one at a time."""

    @abstractmethod
    def reserve(self, holder: str, seconds: float, *, again: bool = False) -> bool:
        """Reserve the index for this holder; False while another one has it.

        The reservation ends after `seconds`, so that a holder that was killed stops nobody. With
        `again`, it is made longer; False if another one may have had the index since.
        """

    @abstractmethod
    def release(self, holder: str) -> None:
        """End the reservation of this holder. Idempotent."""


class KeywordIndexes(ABC):
    """The keyword indexes of an installation."""

    @abstractmethod
    def of(self, name: str, collection: str, missing: Missing) -> Keywords:
        """The index of this name: lower-case letters, digits, `-`, `_` and at most one dot.

        `collection` is the name of the collection in errors.
        """

    def ping(self, seconds: float | None = None) -> None:  # noqa: B027 - a folder has no server
        """Raise KeywordsDown unless the service answers within `seconds`."""

    def probe(self) -> None:  # noqa: B027 - as `ping`
        """Write an entry of no collection and read it back. Raises KeywordsDown if that fails."""

    def close(self) -> None:  # noqa: B027 - as `ping`
        """Close connections."""
