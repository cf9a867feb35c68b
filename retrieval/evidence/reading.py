"""Reads the best passages of a search with the reader: the log odds of each sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from callslip.models.reader.contract import LogOdds, Passage, Reads
from callslip.retrieval.evidence.sentences import Span, sentences
from callslip.retrieval.messages import Hit
from callslip.stores.records import table_header

READ = 3
"""The number of passages that are read; about .1 s each on one core."""

LEAST = -20.0
"""The log odds of a passage without a sentence."""


@dataclass(frozen=True)
class Text:
    """The text of a passage, behind the header of its table if the passage has only the rows.

    `above` is the length of that header; `spans` are the sentences of the whole text.
    """

    text: str
    above: int
    spans: Sequence[Span]

    @classmethod
    def of(cls, hit: Hit) -> "Text":
        """Return the text of a hit."""
        above = table_header(hit.properties)
        text = above + hit.text
        return cls(text, len(above), sentences(text))

    @property
    def sentences(self) -> list[str]:
        """The sentences, in order."""
        return [self.text[start:end] for start, end in self.spans]


Readings = Mapping[str, LogOdds]
"""By chunk id: the log odds of each sentence of `Text.of` to have the answer."""

NO_READINGS: Readings = MappingProxyType({})


def readings(reader: Reads, question: str, hits: Sequence[Hit]) -> Readings:
    """Read the first passages."""
    passages = [
        Passage(" ".join(dict.fromkeys(filter(None, (h.title, h.heading)))), Text.of(h).sentences)
        for h in hits[:READ]
    ]
    odds = reader.read(question, passages)
    return {hit.chunk_id: each for hit, each in zip(hits, odds, strict=False)}


def answers(odds: LogOdds) -> float:
    """The log odds that a passage has the answer: of any of its sentences."""
    return max(LEAST, float(np.logaddexp.reduce(odds))) if len(odds) else LEAST
