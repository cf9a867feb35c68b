"""Citations: passages with the sentence that says so, numbered as they are first used."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlencode

from agent.messages import Citation
from retrieval.clamp import FROM, TO
from retrieval.messages import Hit, Span
from stores.filters import instant
from stores.ledger import Ledger


@dataclass
class Citations:
    """Makes them; the same sentence of the same passage is one.

    `versions` are by document, `readable` the documents that have a text to be shown.
    """

    versions: Mapping[str, int]
    readable: AbstractSet[str]
    made: dict[tuple[str, int, int], Citation] = field(default_factory=dict)

    @classmethod
    def of(cls, hits: Sequence[Hit], ledger: Ledger) -> "Citations":
        """For citing these hits."""
        documents = list(dict.fromkeys(hit.document_id for hit in hits))
        return cls(ledger.versions.live(documents), ledger.versions.readable(documents))

    def cite(self, hit: Hit, span: Span) -> int:
        """The number of the citation of a sentence of a hit."""
        key = hit.chunk_id, span.start, span.end
        if key not in self.made:
            version = self.versions.get(hit.document_id, 0)
            url = _place(hit, span, version) if hit.document_id in self.readable else None
            self.made[key] = _citation(len(self.made) + 1, hit, span, version, url)
        return self.made[key].number

    def all(self) -> tuple[Citation, ...]:
        """All of them, in the order of their numbers."""
        return tuple(self.made.values())


def in_force(citation: Citation, moment: datetime | None) -> bool:
    """Whether a citation's passage was in force then; at any time, where that is None."""
    if moment is None:
        return True
    begun = citation.valid_from is None or citation.valid_from <= moment
    return begun and (citation.valid_to is None or moment < citation.valid_to)


def _place(hit: Hit, span: Span, version: int) -> str:
    place = {
        "document": hit.document_id,
        "start": hit.span.start,
        "end": hit.span.end,
        "from": span.start,
        "to": span.end,
    }
    if version:
        place["version"] = version
    return f"/page/passage?{urlencode(place)}#cited"


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
