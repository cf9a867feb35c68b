"""Citations: passages with the sentence that says so, numbered as they are first used."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlencode

from agent.messages import Citation
from retrieval.clamp import FROM, TO
from retrieval.messages import Hit, Span
from stores.filters import instant


@dataclass
class Citations:
    """Makes them; the same sentence of the same passage is one. `versions` are by document."""

    versions: Mapping[str, int]
    made: dict[tuple[str, int, int], Citation] = field(default_factory=dict)

    def cite(self, hit: Hit, span: Span) -> int:
        """The number of the citation of a sentence of a hit."""
        key = hit.chunk_id, span.start, span.end
        if key not in self.made:
            self.made[key] = _citation(
                len(self.made) + 1, hit, span, self.versions.get(hit.document_id, 0)
            )
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


def _citation(number: int, hit: Hit, span: Span, version: int) -> Citation:
    start = span.start - hit.span.start
    place = {
        "document": hit.document_id,
        "start": hit.span.start,
        "end": hit.span.end,
        "from": span.start,
        "to": span.end,
    }
    if version:
        place["version"] = version
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
        url=f"/page/passage?{urlencode(place)}#cited",
    )


def _day(hit: Hit, name: str) -> datetime | None:
    value = hit.properties.get(name)
    return instant(value) if isinstance(value, str) else None
