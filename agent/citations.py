"""Citations: passages with the cited sentence, numbered in the order of their first use."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlencode

from callslip.agent.messages import Citation
from callslip.retrieval.messages import Hit, Span
from callslip.retrieval.query.as_of import FROM, TO
from callslip.stores.ledger import Ledger
from callslip.stores.properties.filters import instant


@dataclass
class Citations:
    """Creates citations; the same sentence of the same passage is cited once.

    `versions` maps a document id to its version; `readable` has the documents with a readable text.
    """

    versions: Mapping[str, int]
    readable: AbstractSet[str]
    made: dict[tuple[str, int, int], Citation] = field(default_factory=dict)

    @classmethod
    def of(cls, hits: Sequence[Hit], ledger: Ledger) -> "Citations":
        """Create the citations of these hits."""
        documents = list(dict.fromkeys(hit.document_id for hit in hits))
        return cls(ledger.versions.live(documents), ledger.versions.readable(documents))

    def cite(self, hit: Hit, span: Span) -> int:
        """Return the citation number of a sentence of a hit; create the citation if needed."""
        key = hit.chunk_id, span.start, span.end
        if key not in self.made:
            version = self.versions.get(hit.document_id, 0)
            url = _url(hit, span, version) if hit.document_id in self.readable else None
            self.made[key] = _citation(len(self.made) + 1, hit, span, version, url)
        return self.made[key].number

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


def _citation(number: int, hit: Hit, span: Span, version: int, url: str | None) -> Citation:
    start = span.start - hit.span.start
    return Citation(
        number=number,
        chunk_id=hit.chunk_id,
        document_id=hit.document_id,
        version=version,
        title=hit.title,
        filename=hit.filename,
        section=hit.section,
        heading=hit.heading,
        quote=hit.text[start : start + span.end - span.start],
        span=span,
        passage=hit.span,
        valid_from=_day(hit, FROM),
        valid_to=_day(hit, TO),
        url=url,
    )


def _day(hit: Hit, name: str) -> datetime | None:
    value = hit.properties.get(name)
    return instant(value) if isinstance(value, str) else None
