"""Chunks with what searches and filters need to know of them, and what this says of the whole.

Of each chunk: its terms and language, the entities it names under all their names, and the days
that it says it holds from and to. Of the document: the same, and the facets that rules set.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

from ingestion.enrich.aliases import Dictionary, abbreviations, spellings
from ingestion.enrich.facets import facets
from ingestion.enrich.scrub import holds_personal, masked
from ingestion.enrich.validity import Validity, of_chunk, of_document
from ingestion.parts import Chunk, Enriched, EnrichedChunk, ExtractedText
from models.entities import Entity
from models.language import lang
from stores.filters import instant
from stores.options import Options

MOST_OF_CHUNK, MOST_OF_DOCUMENT = 64, 256
"""Names kept; of a document those that most chunks have."""


class Analyzer(Protocol):
    """What keyword indexes and queries share; `models.analyzer.Analyzer` is one."""

    def analyze(self, text: str) -> str:
        """The terms of a text, separated by spaces."""
        ...


class Recognizer(Protocol):
    """What finds names; `models.entities.Recognizer` is one."""

    version: str

    def find(self, texts: Sequence[str]) -> list[list[Entity]]:
        """The entities of each text."""
        ...


class Confirmer(Protocol):
    """Who says which names are right; `models.language_model.LanguageModel` is one."""

    model: str

    def confirm(self, passage: str, names: Sequence[str]) -> frozenset[str]:
        """Those of the names that the passage really names."""
        ...


@dataclass(frozen=True)
class Tools:
    """What enrichment works with. `confirmer` is None where no language model is set up."""

    analyzer: Analyzer
    recognizer: Recognizer
    confirmer: Confirmer | None = None


@dataclass(frozen=True)
class Source:
    """A document as it was read and submitted, under its name in the collection."""

    extracted: ExtractedText
    name: str
    submitted: Mapping[str, Any]


def enrich(
    source: Source,
    chunks: Sequence[Chunk],
    options: Options,
    tools: Tools,
    known: Mapping[str, EnrichedChunk] | None = None,
) -> Enriched:
    """Find out about a document and its chunks what the collection wants to know.

    What the sender says wins over what the file says, and that over what is found. Days that
    contradict each other are left out, with a warning. `known` are chunks by id that
    were enriched with these options and tools before: the same id is the same text.
    """
    text = source.extracted.text
    contents = [chunk.read(text) for chunk in chunks]
    whole, warnings = _validity(source)
    before = [(known or {}).get(chunk.chunk_id) for chunk in chunks]
    named = _named(contents, before, source, options, tools)
    names = _names(contents, named, source, options)
    enriched = []
    for n, (chunk, content) in enumerate(zip(chunks, contents, strict=True)):
        days = of_chunk(content)
        if Validity(days.begins or whole.begins, days.ends or whole.ends).contradictory:
            warnings.append(f"chunk {chunk.ordinal} says that it ends before it begins: left out")
            days = Validity()
        found: dict[str, str | list[str]] = dict(days.properties())
        if names[n]:
            found["entities"] = names[n]
        former = before[n]
        terms = former.terms if former else tools.analyzer.analyze(content)
        enriched.append(EnrichedChunk(chunk, lang(content), terms, found, tuple(named[n])))
    properties: dict[str, str | list[str]] = {
        name: day for name, day in whole.properties().items() if name not in source.submitted
    }
    counted = Counter(chain.from_iterable(names))
    if counted or _given(source):
        properties["entities"] = [name for name, _ in counted.most_common(MOST_OF_DOCUMENT)]
    by_rule = facets(options.rules, source.name, text)
    return Enriched(enriched, by_rule, properties, tuple(warnings))


def _validity(source: Source) -> tuple[Validity, list[str]]:
    """From when to when the document holds; what is submitted counts even against its text."""
    begins, ends = (
        moment.date() if (moment := instant(str(source.submitted.get(name, "")))) else None
        for name in ("valid_from", "valid_to")
    )
    found = of_document(source.extracted.text, source.extracted.properties)
    whole = Validity(begins or found.begins, ends or found.ends)
    if whole.contradictory:
        return Validity(begins, ends), ["the document says that it ends before it begins: left out"]
    return whole, []


def _named(
    contents: Sequence[str],
    before: Sequence[EnrichedChunk | None],
    source: Source,
    options: Options,
    tools: Tools,
) -> list[Sequence[Entity]]:
    """The entities of each chunk, as before where it was recognized before."""
    named: list[Sequence[Entity]] = [chunk.named if chunk else () for chunk in before]
    new = [n for n, chunk in enumerate(before) if chunk is None]
    if options.entities and _given(source) is not None:
        found = tools.recognizer.find([contents[n] for n in new])
        for n, entities in zip(new, found, strict=True):
            named[n] = _confirmed(contents[n], entities, options, tools)
    return named


def _names(
    contents: Sequence[str], own: Sequence[Sequence[Entity]], source: Source, options: Options
) -> list[list[str]]:
    """The names of each chunk, with their spellings, abbreviations and aliases."""
    given = _given(source)
    if given is None:  # the sender means something else by this property
        return [[] for _ in contents]
    dictionary = Dictionary(options.dictionary)
    short = Dictionary(_abbreviated(contents, own))
    names = []
    for content, entities in zip(contents, own, strict=True):
        every = chain(
            given,
            dictionary.find(content),
            chain.from_iterable(map(spellings, entities)),
            short.find(content),
        )
        kept = [n for n in dict.fromkeys(every) if options.scrub == "off" or not holds_personal(n)]
        names.append(kept[:MOST_OF_CHUNK])
    return names


def _given(source: Source) -> list[str] | None:
    """The names that the sender says every chunk has; None where these are no names."""
    given = source.submitted.get("entities", [])
    named = isinstance(given, list) and all(isinstance(name, str) for name in given)
    return given if named else None


def _confirmed(
    content: str, entities: Sequence[Entity], options: Options, tools: Tools
) -> list[Entity]:
    """The entities that a language model lets stand, where the collection asks one."""
    asked = sorted({entity.name for entity in entities if entity.kind != "date"})
    if not options.confirm or tools.confirmer is None or not asked:
        return list(entities)
    if options.scrub != "off":
        content, asked = masked(content), [name for name in asked if not holds_personal(name)]
    right = tools.confirmer.confirm(content, asked)
    return [entity for entity in entities if entity.kind == "date" or entity.name in right]


def _abbreviated(
    contents: Sequence[str], found: Sequence[Sequence[Entity]]
) -> dict[str, list[str]]:
    """What the document abbreviates anywhere, by full name."""
    short: dict[str, list[str]] = {}
    for content, entities in zip(contents, found, strict=True):
        for name, abbreviation in abbreviations(content, entities):
            short.setdefault(name, []).append(abbreviation)
    return short
