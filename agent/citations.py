"""Citations: passages with the cited sentence, numbered in the order of their first use."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from urllib.parse import urlencode

from callslip.agent.messages import Citation
from callslip.agent.text_fragments import with_text
from callslip.ingestion.artifacts import EXTRACTED, SECTIONS, stored_if_up
from callslip.ingestion.boxes import areas
from callslip.ingestion.extract.sniff import HTML
from callslip.ingestion.values import ExtractedText, Section
from callslip.retrieval.messages import Area, Hit, Pages, Span
from callslip.retrieval.query.as_of import FROM, TO
from callslip.retrieval.ranking.hits import pages_of
from callslip.stores.backend import Backend
from callslip.stores.ledger import NO_PAGES, PageTable
from callslip.stores.properties.filters import instant


@dataclass
class Citations:
    """Creates citations; the same sentence of the same passage is cited once.

    `versions` maps a document id to its version; `readable` has the documents with a readable text;
    `outline` returns the sections of a version, in order, or none. `tables` maps a document id to
    its pages; `lines` returns the extract of a version, with its lines, or None.
    """

    versions: Mapping[str, int]
    readable: AbstractSet[str]
    outline: Callable[[str, int], Sequence[Section]] = lambda document_id, version: ()
    tables: Mapping[str, PageTable] = field(default_factory=dict)
    lines: Callable[[str, int], ExtractedText | None] = lambda document_id, version: None
    made: dict[tuple[str, int, int], Citation] = field(default_factory=dict)

    @classmethod
    def of(cls, hits: Sequence[Hit], backend: Backend) -> "Citations":
        """Create the citations of these hits."""
        documents = list(dict.fromkeys(hit.document_id for hit in hits))
        versions = backend.ledger.versions

        @cache
        def outline(document_id: str, version: int) -> Sequence[Section]:
            return stored_if_up(backend, document_id, version, "sectionize", SECTIONS) or ()

        @cache
        def lines(document_id: str, version: int) -> ExtractedText | None:
            return stored_if_up(backend, document_id, version, "extract", EXTRACTED)

        live = versions.live(documents)
        tables = backend.ledger.pages.of(live)
        return cls(live, versions.readable(documents), outline, tables, lines)

    def cite(self, hit: Hit, span: Span) -> int:
        """Return the citation number of a sentence of a hit; create the citation if needed."""
        key = hit.chunk_id, span.start, span.end
        if key not in self.made:
            version = self.versions.get(hit.document_id, 0)
            url = _url(hit, span, version) if hit.document_id in self.readable else None
            heading = self._heading(hit, span, version) if url else hit.heading
            made = _citation(len(self.made) + 1, hit, span, version, heading, url)
            pages = pages_of(self.tables.get(hit.document_id, NO_PAGES), span.start, span.end)
            update = {
                "pages": pages,
                "boxes": self._boxes(hit, span, version, pages),
                "source_url": self._source(hit, made.quote, version),
            }
            self.made[key] = made.model_copy(update=update)
        return self.made[key].number

    def _boxes(self, hit: Hit, span: Span, version: int, pages: Pages | None) -> list[Area] | None:
        """Return the lines of a sentence on the pages of a PDF; None if they are unknown."""
        if pages is None or pages.unit != "page":
            return None
        extract = self.lines(hit.document_id, version)
        if extract is None or not extract.boxes:
            return None
        lines = areas(extract.boxes, extract.text, span.start, span.end)
        return [Area(**line._asdict()) for line in lines]

    def _source(self, hit: Hit, quote: str, version: int) -> str | None:
        """Return the address of a hit's source; of a web page it leads to the quote."""
        if hit.source_url is None:
            return None
        extract = self.lines(hit.document_id, version)
        if extract is None or extract.media_type != HTML:
            return hit.source_url
        return with_text(hit.source_url, quote)

    def _heading(self, hit: Hit, span: Span, version: int) -> str:
        """Return the nearest heading above a sentence; the passage's if none is in between."""
        if span.start > hit.span.start:
            sections = self.outline(hit.document_id, version)
            above = bisect_right(sections, span.start, key=lambda section: section.start) - 1
            if above >= 0 and sections[above].start > hit.span.start:
                return sections[above].heading
        return hit.heading

    def all(self) -> tuple[Citation, ...]:
        """Return all citations in the order of their numbers."""
        return tuple(self.made.values())


def in_force(citation: Citation, moment: datetime | None) -> bool:
    """Whether a citation's passage was in force at `moment`; true if `moment` is None."""
    if moment is None:
        return True
    begun = citation.valid_from is None or citation.valid_from <= moment
    return begun and (citation.valid_to is None or moment < citation.valid_to)


def _url(hit: Hit, span: Span, version: int) -> str:
    query = {
        "document": hit.document_id,
        "start": hit.span.start,
        "end": hit.span.end,
        "from": span.start,
        "to": span.end,
    }
    if version:
        query["version"] = version
    return f"/page/passage?{urlencode(query)}#cited"


def _citation(
    number: int, hit: Hit, span: Span, version: int, heading: str, url: str | None
) -> Citation:
    start = span.start - hit.span.start
    return Citation(
        number=number,
        chunk_id=hit.chunk_id,
        document_id=hit.document_id,
        version=version,
        title=hit.title,
        filename=hit.filename,
        section=hit.section,
        heading=heading,
        quote=hit.text[start : start + span.end - span.start],
        span=span,
        passage=hit.span,
        valid_from=_day(hit, FROM),
        valid_to=_day(hit, TO),
        url=url,
        within=hit.within,
    )


def _day(hit: Hit, name: str) -> datetime | None:
    value = hit.properties.get(name)
    return instant(value) if isinstance(value, str) else None
