"""Ranks the sentences of retrieved passages by how well they answer a question.

The score of a sentence is its coverage of the question's terms, weighted by inverse document
frequency, plus twice its cosine to the question. The terms of the section heading, of the title,
and of a question or heading directly before the sentence count as terms of the sentence. The terms
of the previous sentence count in part: `It is not taxed` is about the grant. What a sentence
depends on is quoted with it (`evidence.context`). A table row also has
the terms of its header. A sentence with the kind of answer that the question asks for scores higher
(`evidence.kinds`).
docs/quality.md states the measured effect of each rule.
"""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from callslip.errors import EmbedderDown
from callslip.languages import Codes
from callslip.models.embedders.contract import Embedder
from callslip.models.reader.contract import LogOdds
from callslip.models.text.analyzer import Analyzer
from callslip.retrieval.evidence.clauses import commands
from callslip.retrieval.evidence.context import lead_of, leads_in, leans, list_after
from callslip.retrieval.evidence.kinds import fit, has_number, kinds_of
from callslip.retrieval.evidence.labels import Labels, has_labels, labels_of
from callslip.retrieval.evidence.overlap import covered, jaccard
from callslip.retrieval.evidence.ranges import amounts_of, in_range
from callslip.retrieval.evidence.reading import LEAST, NO_READINGS, Readings, Text
from callslip.retrieval.evidence.sentences import Span as SentenceSpan
from callslip.retrieval.evidence.sentences import sentences
from callslip.retrieval.evidence.table_rows import headers, paired, rows_of
from callslip.retrieval.messages import Hit, Span
from callslip.stores.records import Vector

MEANING = 2.0
"""The score of a cosine of 1, in the unit of the covered share of the question's words."""

BEFORE = 0.7
"""The factor of a question's word that only the previous sentence contains."""

IN_RANGE = 0.3
"""The score of a table row whose range has an amount of the question: `3 to 5` for four years."""

OTHER_LABEL = 0.3
"""What a sentence loses whose labels have other numbers than the question: `X200` for `X300`."""

READER, DECADES = 0.2, 5.0
"""The score of the sentence that the reader chooses, and the distance in log odds of a sentence to
the best one at which nothing is added."""

EMBEDDED = 8
"""The number of embedded sentences, those with most of the question's words; 5 to 10 ms each."""

LONGEST = 300
"""The embedded characters of a sentence: a page without a full stop is one sentence."""

NEAR = 0.97
"""The minimum score of a further sentence, as a share of the best score."""

NEWEST = 0.65
"""The minimum share of a follow-up's own words in a sentence with its title and heading: other
sentences answer the question before. Compounds with one head (출산장려금, 결혼장려금) share .6."""

SHORTEST = 12
"""The minimum number of characters of a statement; shorter sentences are headings and list
marks."""


_QUESTION = re.compile(r"[?？][\"'”’)*\]]*$")
_MARKED = re.compile(r"# +\Z")
"""What stands before a heading in Markdown."""

_NUMBERED = re.compile(r"^((?:\d+\.)+\d*)\s+(?![a-z])[^.!?\n]{1,60}$")
"""A numbered heading or an entry of a list; not `3.5 euros`."""


@dataclass(frozen=True)
class Extract:
    """A sentence of a hit, or a table row with its header. Spans are of the document's text."""

    hit: Hit
    span: Span
    text: str
    worth: float
    position: tuple[str, int]
    """The location of the sentence, which is the same for all rows of a table."""
    header: Span | None = None
    """Also None if the passage continues a table that began before it."""


@dataclass(frozen=True)
class Target:
    """The input of the comparison: the question, the IDF of its terms, and its vector.

    `newest` has the IDF of the terms of a follow-up's own words; an extract has most of them.
    """

    text: str
    idf: Mapping[str, float]
    vector: Vector | None
    newest: Mapping[str, float] = field(default_factory=dict)

    def worth(self, terms: AbstractSet[str], before: AbstractSet[str]) -> float:
        """The share of covered terms; terms that only the context before covers count in part."""
        sure = covered(self.idf, terms)
        return sure + BEFORE * (covered(self.idf, terms | before) - sure)

    def has_newest(self, terms: AbstractSet[str]) -> bool:
        """Whether a text with these terms is about a follow-up's own words; true without any."""
        return not self.newest or covered(self.newest, terms) >= NEWEST


def extracts(
    hits: Sequence[Hit],
    target: Target,
    analyzer: Analyzer,
    embedder: Embedder,
    most: int,
    read: Readings = NO_READINGS,
) -> list[Extract]:
    """Return the best sentences of these hits, at most `most`, best first.

    `read` has what a reader says of the hits that it read.

    The rows of one table count as one sentence. Questions, headings, table headers and sentences
    that tell whoever answers what to say are not answers; if the hits contain nothing else, the
    list is empty.
    """
    best = max(
        (float(read[h.chunk_id].max(initial=LEAST)) for h in hits if h.chunk_id in read),
        default=0.0,
    )
    candidates = [
        extract
        for hit in hits
        for extract in _of(hit, target, analyzer, read.get(hit.chunk_id), best)
    ]
    candidates.sort(key=lambda e: -e.worth)
    if target.vector is not None and len(candidates) > 1:
        candidates = _by_meaning(candidates[:EMBEDDED], target.vector, embedder)
    if not candidates:
        return []
    least = NEAR * candidates[0].worth
    near = [e for i, e in enumerate(candidates) if i == 0 or e.worth >= least]
    first_of = {_plain(e.text): e for e in reversed(near)}  # the first of equal statements
    near = _whole([e for e in near if first_of[_plain(e.text)] is e])
    positions = list(dict.fromkeys(e.position for e in near))[:most]
    return [e for e in near if e.position in positions]


def _whole(extracts: Sequence[Extract]) -> list[Extract]:
    """Leave out extracts that overlap a better one; a list takes the rank of its best entry."""
    made: list[Extract] = []
    for extract in extracts:
        around = (e for e in extracts if _contains(e, extract))
        whole = max(around, key=lambda e: e.span.end - e.span.start)
        if not any(_overlap(whole, other) for other in made):
            made.append(whole)
    return made


def _contains(whole: Extract, part: Extract) -> bool:
    inside = whole.span.start <= part.span.start and part.span.end <= whole.span.end
    return whole.hit is part.hit and inside


def _overlap(one: Extract, other: Extract) -> bool:
    apart = one.span.end <= other.span.start or other.span.end <= one.span.start
    return one.hit is other.hit and not apart


def _by_meaning(candidates: list[Extract], vector: Vector, embedder: Embedder) -> list[Extract]:
    """Add the weighted cosine to each score; change nothing if the embedder is down."""
    try:
        cosines = embedder.passages([e.text[:LONGEST] for e in candidates]) @ vector
    except EmbedderDown:
        return candidates
    with_meaning = [
        replace(e, worth=e.worth + MEANING * float(cosine))
        for e, cosine in zip(candidates, cosines, strict=True)
    ]
    return sorted(with_meaning, key=lambda e: -e.worth)


def _of(
    hit: Hit, target: Target, analyzer: Analyzer, odds: LogOdds | None, best: float
) -> list[Extract]:
    """Return the sentences and table rows of a hit with their scores.

    `odds` are the log odds of its sentences, `best` those of the best sentence of all hits.
    """
    passage = Text.of(hit)
    text, above, spans, texts = passage.text, passage.above, passage.spans, passage.sentences
    terms = [_terms(sentence, analyzer) for sentence in texts]
    about = (hit.title, hit.heading, *hit.section.split("/"))
    titles, title = {_letters(part) for part in about}, _terms(hit.title, analyzer)
    under = _terms(" ".join(about[1:]), analyzer)
    depths, rows = [_depth(sentence) for sentence in texts], rows_of(text, spans)
    header_of = headers(text, spans, rows)
    kinds = kinds_of(target.text, analyzer.codes)
    amounts = amounts_of(target.text, analyzer.codes)
    labels = labels_of(target.text, analyzer.codes)
    made: list[Extract] = []
    begin, heading = hit.span.start - above, hit.heading
    led: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    before_stands = False
    for at, ((start, end), sentence) in enumerate(zip(spans, texts, strict=True)):
        stands = True
        marked = _MARKED.search(text, max(0, start - 8), start)
        if marked or _letters(sentence) in titles or _heads(at, depths):
            under, stands = terms[at], False  # of the section that begins here
            heading = sentence
            if start >= above and "date" in kinds and fit(sentence, {"date"}, analyzer.codes):
                span = Span(start=begin + start, end=begin + end)
                worth = target.worth(title | terms[at], frozenset())
                worth += _suits(sentence, heading, kinds, labels, analyzer.codes)
                made.append(Extract(hit, span, sentence, worth, (hit.chunk_id, start)))
        elif _QUESTION.search(sentence):
            led, stands = led | terms[at], False
        elif start >= above and at not in header_of.values():
            header = header_of.get(at)
            covering_terms = (
                title | under | led | terms[at] | (terms[header] if header is not None else set())
            )
            worth = target.worth(covering_terms, before)
            numbered = has_number(sentence, analyzer.codes)
            if len(sentence) < SHORTEST and header is None and not numbered:
                worth = 0.0  # `Yes.`, followed by the reason
            else:
                led = frozenset()
            worth += _suits(sentence, heading, kinds, labels, analyzer.codes)
            if odds is not None:
                worth += READER * max(0.0, 1 - (best - float(odds[at])) / DECADES)
            if header is None:
                whole = _with_context(text, spans, at, before_stands)
                first, last = (spans[whole[0]].start, spans[whole[1]].end) if whole else (0, 0)
                quoted = covering_terms.union(*terms[whole[0] : whole[1] + 1]) if whole else led
                on_topic = whole and target.has_newest(quoted)
                if on_topic and not commands(text[first:last], analyzer.codes):
                    span = Span(start=begin + first, end=begin + last)
                    made.append(Extract(hit, span, text[first:last], worth, (hit.chunk_id, start)))
            else:
                span = Span(start=begin + start, end=begin + end)
                top, bottom = spans[header]
                named = Span(start=begin + top, end=begin + bottom) if top >= above else None
                read = paired(rows[header], rows[at])
                worth += IN_RANGE * in_range(amounts, rows[header], rows[at], analyzer.codes)
                if target.has_newest(covering_terms) and not commands(read, analyzer.codes):
                    made.append(Extract(hit, span, read, worth, (hit.chunk_id, top), named))
        else:
            stands = False
        before, before_stands = terms[at], stands
    return made


def _suits(
    sentence: str, heading: str, kinds: AbstractSet[str], labels: Labels, codes: Codes
) -> float:
    """The score of a sentence for its kind, and for its labels with those of its heading."""
    about_another = not has_labels(labels, f"{heading}\n{sentence}", codes)
    return fit(sentence, kinds, codes) - OTHER_LABEL * about_another


def _with_context(
    text: str, spans: Sequence[SentenceSpan], at: int, before_stands: bool
) -> tuple[int, int] | None:
    """Return the first and the last sentence that are quoted for sentence `at`.

    Returns None if the sentence announces a list that the passage does not have.
    """
    sentence = text[spans[at].start : spans[at].end]
    last = list_after(text, spans, at) if leads_in(sentence) else at
    if last == at and leads_in(sentence):
        return None
    return (at - 1 if before_stands and leans(text, spans, at) else at), last


def lead(extract: Extract, analyzer: Analyzer) -> Span | None:
    """Return the sentence that announces the list with the extract: `Guests must not:`.

    Returns None if the extract is no entry of a list, or if its passage lacks that sentence.
    """
    passage, hit = Text.of(extract.hit), extract.hit
    begin = hit.span.start - passage.above
    starts = [begin + start for start, _ in passage.spans]
    if extract.header is not None or extract.span.start not in starts:
        return None
    at = lead_of(passage.text, passage.spans, starts.index(extract.span.start))
    if at is None or passage.spans[at].start < passage.above:
        return None
    start, end = passage.spans[at]
    if commands(passage.text[start:end], analyzer.codes):
        return None
    return Span(start=begin + start, end=begin + end)


def _terms(text: str, analyzer: Analyzer) -> frozenset[str]:
    return frozenset(analyzer.analyze(text).split())


def _depth(text: str) -> int:
    """The depth of the number that starts a heading or list entry; 0 if there is none."""
    match = _NUMBERED.match(text.lstrip("*"))  # emphasis
    return match[1].rstrip(".").count(".") + 1 if match else 0


def _heads(at: int, depths: Sequence[int]) -> bool:
    """Whether a line is a heading: adjacent numbered lines of the same depth are a list."""
    beside = (*depths[max(0, at - 1) : at], *depths[at + 1 : at + 2])
    return depths[at] > 0 and depths[at] not in beside


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def nearest(statement: str, hit: Hit, analyzer: Analyzer) -> Span:
    """The sentence of a hit that has the most terms in common with the statement."""
    wanted = set(analyzer.analyze(statement).split())
    best, most = Span(start=hit.span.start, end=hit.span.end), 0.0
    for start, end in sentences(hit.text):
        terms = set(analyzer.analyze(hit.text[start:end]).split())
        shared = jaccard(terms, wanted)
        if shared > most:
            best, most = Span(start=hit.span.start + start, end=hit.span.start + end), shared
    return best
