"""The pages of each version's text, which tell on which page a passage stands."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from sqlalchemy import Row, bindparam, select, tuple_

from callslip.readers import Reader
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.readable import limited
from callslip.vocabulary import PageUnit

MOST_PAGES = 100_000
LONGEST_LABEL = 64
"""The maximum characters of a label; a longer one is cut."""

_PAGED = (".pdf", ".pptx", ".xlsx", ".epub", ".odp", ".ods")

_V = schema.versions.c

_PAGES = select(_V.document_id, _V.pages).where(
    tuple_(_V.document_id, _V.version).in_(bindparam("made", expanding=True))
)


class PageRange(NamedTuple):
    """The first and the last page of a passage, from 1, and what is printed on them.

    `labels` has the label of the first and of the last page, or is empty if no page has one.
    """

    unit: PageUnit
    first: int
    last: int
    labels: tuple[str, ...]


@dataclass(frozen=True)
class PageTable:
    """Where each page begins in the text of a version.

    `labels` has what is printed on each page, "" where that is the page's number; it is empty if
    all of them are "".
    """

    unit: PageUnit
    starts: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(max_length=MOST_PAGES)]
    labels: Annotated[
        tuple[Annotated[str, Field(max_length=LONGEST_LABEL)], ...], Field(max_length=MOST_PAGES)
    ] = ()

    def of(self, start: int, end: int) -> PageRange | None:
        """Return the pages of `text[start:end]`; None if the table has no pages."""
        if not self.starts:
            return None
        first, last = self._number(start), self._number(max(start, end - 1))
        return PageRange(self.unit, first, last, self._labels(first, last))

    def _number(self, at: int) -> int:
        return max(1, bisect_right(self.starts, at))

    def _labels(self, first: int, last: int) -> tuple[str, ...]:
        if len(self.labels) < last:
            return ()
        return self.labels[first - 1] or str(first), self.labels[last - 1] or str(last)

    def as_json(self) -> dict[str, Any]:
        """The JSON that the ledger stores."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "PageTable":
        """The table of the JSON that the ledger stores."""
        return cls(value["unit"], tuple(value["starts"]), tuple(value["labels"]))


NO_PAGES = PageTable("page", ())
"""The table of a text without pages, and of one whose pages are unknown."""


def lacks_pages(version: Row[Any]) -> bool:
    """Whether a live version of a format with pages was made before Callslip kept them."""
    paged = version.filename.lower().endswith(_PAGED)
    return paged and version.state == "live" and version.pages is None


class Pages:
    """Reads the pages of versions."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def of(self, versions: Mapping[str, int]) -> dict[str, PageTable]:
        """The pages of these versions by document id; omits those whose text has no pages."""
        query = limited(_PAGES, _V.document_id, self._reader)
        with self._database.reading() as connection:
            return {
                document_id: PageTable.from_json(pages)
                for document_id, pages in connection.execute(
                    query, {"made": list(versions.items())}
                )
                if pages is not None
            }
