"""Enriches chunks with the data that searches and filters need, and the document with a summary.

Each chunk gets its terms and language, the entities that it mentions with all their names, and its
dates of validity. The document gets names and dates of validity, and the facets that rules set.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

from callslip.ingestion.enrich.aliases import Dictionary, abbreviations, spellings
from callslip.ingestion.enrich.facets import facets
from callslip.ingestion.enrich.scrub import holds_personal, masked
from callslip.ingestion.enrich.validity import Validity, of_chunk, of_document
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import Chunk, Enriched, EnrichedChunk, ExtractedText
from callslip.languages import DEFAULT, Codes
from callslip.messages.options import Options
from callslip.models.entities import Entity
from callslip.models.text.language import lang
from callslip.stores.properties.filters import instant
from callslip.vocabulary import VALIDITY

MOST_OF_CHUNK, MOST_OF_DOCUMENT = 64, 256
"""The maximum numbers of entity names of a chunk and of a document. A document gets the names that
occur in most of its chunks."""


class Analyzer(Protocol):
    """Computes keyword terms; `models.text.analyzer.Analyzer` implements this protocol."""

    def analyze(self, text: str) -> str:
        """Return the terms of a text, separated by spaces."""
        ...


class Recognizer(Protocol):
    """Recognizes names; `models.entities.Recognizer` implements this protocol."""

    version: str

    def find(self, texts: Sequence[str]) -> Iterable[list[Entity]]:
        """Return the entities of each text in order; may read a text when its turn comes."""
        ...


class Confirmer(Protocol):
    """Decides which recognized names are right.

    `models.language_models.client.LanguageModel` implements this protocol.
    """

    model: str

    def confirm(self, passage: str, names: Sequence[str]) -> frozenset[str]:
        """Return the names that the passage really contains."""
        ...


@dataclass(frozen=True)
class Tools:
    """The models of enrichment; `confirmer` is None if no language model is configured."""

    analyzer: Analyzer
    recognizer: Recognizer
    confirmer: Confirmer | None = None
    codes: Codes = DEFAULT


@dataclass(frozen=True)
class Source:
    """A document as extracted and submitted, with its name in the collection.

    `by_hand` names the bounds of validity that an edit set: they hold for every chunk.
    """

    extracted: ExtractedText
    name: str
    submitted: Mapping[str, Any]
    by_hand: Sequence[str] = ()


@dataclass(frozen=True)
class Input:
    """A document to enrich, with the options of its collection.

    `known` are chunks by id that were enriched with these options and tools before: the same id
    means the same text.
    """

    source: Source
    chunks: Sequence[Chunk]
    options: Options
    tools: Tools
    known: Mapping[str, EnrichedChunk] = field(default_factory=dict)


def enrich(documents: Sequence[Input]) -> list[Enriched]:
    """Enrich each document and its chunks as the options of its collection specify.

    Submitted properties override those of the file, which override recognized ones. Contradictory
    dates are left out, with a warning. The recognizer, which is the same for all, reads the new
    chunks of all documents in one call: for short documents that takes less time than a call each.
    """
    contents = [[chunk.read(d.source.extracted.text) for chunk in d.chunks] for d in documents]
    new = [_unnamed(document) for document in documents]
    texts = [read[n] for read, some in zip(contents, new, strict=True) for n in some]
    recognized = iter(documents[0].tools.recognizer.find(texts) if texts else ())
    return [
        _enriched(document, read, frozenset(some), recognized)
        for document, read, some in zip(documents, contents, new, strict=True)
    ]


def _enriched(
    document: Input,
    contents: Sequence[str],
    unnamed: frozenset[int],
    recognized: Iterator[Sequence[Entity]],
) -> Enriched:
    source, options, tools = document.source, document.options, document.tools
    chunks, text = document.chunks, source.extracted.text
    codes = tools.codes
    whole, lost = _validity(source, codes)
    contradictory: list[int] = []
    named: list[Sequence[Entity]] = []
    terms: list[str] = []
    for n, (chunk, content) in enumerate(zip(chunks, contents, strict=True)):
        known = document.known.get(chunk.chunk_id)
        named.append(known.named if known else ())
        if n in unnamed:
            named[n] = _confirmed(content, next(recognized), options, tools)
        terms.append(known.terms if known else tools.analyzer.analyze(content))
    names = _names(contents, named, source, options)
    enriched = []
    for n, (chunk, content) in enumerate(zip(chunks, contents, strict=True)):
        days = of_chunk(content, codes)
        if source.by_hand:
            days = _without(days, source.by_hand)
        if Validity(days.begins or whole.begins, days.ends or whole.ends).contradictory:
            contradictory.append(chunk.ordinal)
            days = Validity()
        facts: dict[str, str | list[str]] = dict(days.properties())
        if names[n]:
            facts["entities"] = names[n]
        enriched.append(
            EnrichedChunk(chunk, lang(content, codes), terms[n], facts, tuple(named[n]))
        )
    properties: dict[str, str | list[str]] = {
        name: day for name, day in whole.properties().items() if name not in source.submitted
    }
    counted = Counter(chain.from_iterable(names))
    if counted or _submitted_names(source):
        properties["entities"] = [name for name, _ in counted.most_common(MOST_OF_DOCUMENT)]
    by_rule = facets(options.rules, source.name, text)
    warnings = left_out(
        {"days by which the document ends before it begins": int(lost)},
        {"days by which chunks end before they begin": contradictory},
    )
    return Enriched(enriched, by_rule, properties, warnings)


def _validity(source: Source, codes: Codes) -> tuple[Validity, bool]:
    """The validity of the document, and whether days of its text contradict each other.

    Submitted days override those of the text.
    """
    begins, ends = (
        moment.date() if (moment := instant(str(source.submitted.get(name, "")))) else None
        for name in VALIDITY
    )
    facts = of_document(source.extracted.text, source.extracted.properties, codes)
    whole = Validity(begins or facts.begins, ends or facts.ends)
    if whole.contradictory:
        return Validity(begins, ends), True
    return whole, False


def _without(days: Validity, by_hand: Sequence[str]) -> Validity:
    return Validity(
        None if "valid_from" in by_hand else days.begins,
        None if "valid_to" in by_hand else days.ends,
    )


def _unnamed(document: Input) -> list[int]:
    """The numbers of the chunks whose names the recognizer has to find."""
    if not document.options.entities or _submitted_names(document.source) is None:
        return []
    return [n for n, c in enumerate(document.chunks) if c.chunk_id not in document.known]


def _names(
    contents: Sequence[str], own: Sequence[Sequence[Entity]], source: Source, options: Options
) -> list[list[str]]:
    """The names of each chunk, with their spellings, abbreviations and aliases."""
    sent = _submitted_names(source)
    if sent is None:  # the sender uses this property for something else
        return [[] for _ in contents]
    dictionary = Dictionary(options.dictionary)
    short = Dictionary(_abbreviated(contents, own))
    names = []
    for content, entities in zip(contents, own, strict=True):
        every = chain(
            sent,
            dictionary.find(content),
            chain.from_iterable(map(spellings, entities)),
            short.find(content),
        )
        allowed = [
            n for n in dict.fromkeys(every) if options.scrub == "off" or not holds_personal(n)
        ]
        names.append(allowed[:MOST_OF_CHUNK])
    return names


def _submitted_names(source: Source) -> list[str] | None:
    """The names that the sender submitted for every chunk; None if the value is not names."""
    sent = source.submitted.get("entities", [])
    named = isinstance(sent, list) and all(isinstance(name, str) for name in sent)
    return sent if named else None


def _confirmed(
    content: str, entities: Sequence[Entity], options: Options, tools: Tools
) -> list[Entity]:
    """The entities that the language model confirms, if the collection uses one."""
    candidates = sorted({entity.name for entity in entities if entity.kind != "date"})
    if not options.confirm or tools.confirmer is None or not candidates:
        return list(entities)
    if options.scrub != "off":
        content, candidates = (
            masked(content),
            [name for name in candidates if not holds_personal(name)],
        )
    right = tools.confirmer.confirm(content, candidates)
    return [entity for entity in entities if entity.kind == "date" or entity.name in right]


def _abbreviated(
    contents: Sequence[str], facts: Sequence[Sequence[Entity]]
) -> dict[str, list[str]]:
    """The abbreviations that the document defines anywhere, by full name."""
    short: dict[str, list[str]] = {}
    for content, entities in zip(contents, facts, strict=True):
        for name, abbreviation in abbreviations(content, entities):
            short.setdefault(name, []).append(abbreviation)
    return short
