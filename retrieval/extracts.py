"""The sentences of passages that answer a question best, word for word.

A sentence is worth the share of the question's words that it says, rare ones counting more, and
twice its cosine to the question. What its heading and title say is said of it, what the question
or heading right before it says too, and what the sentence before it says in part: `It is not
taxed` is about the grant. A row of a table says what its header says. Where a number is asked for,
a sentence with one is worth more. docs/quality.md has what each of these is worth.
"""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from callslip.errors import EmbedderDown
from models.analyzer import Analyzer
from models.embedder import Embedder
from retrieval.messages import Hit, Span
from retrieval.rows import headers, paired
from retrieval.sentences import sentences
from retrieval.shares import covered, jaccard
from stores.records import TABLE_HEADER, Vector

MEANING = 2.0
"""What a cosine of 1 is worth, in shares of the question's words."""

BEFORE = 0.7
"""Of a word of the question that only the sentence before says."""

NUMBER = 0.2
"""What a number is worth where one is asked for."""

EMBEDDED = 8
"""Sentences whose cosine is taken, those with most of the question's words; 5 to 10 ms each."""

LONGEST = 300
"""Characters of a sentence that are embedded: a page without a full stop is one sentence."""

NEAR = 0.97
"""A further sentence is worth at least so much of the best one."""

SHORTEST = 12
"""Characters of a sentence that says something; shorter ones are headings and list marks."""


_QUESTION = re.compile(r"[?？][\"'”’)*]*$")
_NUMBERED = re.compile(r"^((?:\d+\.)+\d*)\s+(?![a-z])[^.!?\n]{1,60}$")
"""A heading that is known by its number, or an entry of a list; not `3.5 euros`."""


_ASKS_NUMBER = re.compile(
    r"\bhow\s+(?:many|much|long|old|often|far|fast|soon|large|big|tall|high|deep|wide|late|early)\b"
    r"|\bwhen\b|\b(?:what|which)\s+(?:year|date|day|time|percentage|percent|number|age|amount|price"
    r"|cost|hours?|fee)\b"
    r"|얼마|몇|며칠|언제|기한|요금|수수료|금액|상한|하한|기간|비율",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six"
    r"|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred|thousand|million"
    r"|once|twice|half)\b"
    r"|(?:하루|이틀|사흘|나흘|닷새|무료)|(?:한|두|세|네|다섯|여섯)\s?(?:시간|번|달|해|명|점|주)"
    r"|[일이삼사오육칠팔구십백천만]{2,}\s?(?:일|개월|년|원|명|시간|분|주|퍼센트|세|회)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Extract:
    """A sentence of a hit, or a row with its header. Spans are of the document's text."""

    hit: Hit
    span: Span
    text: str
    worth: float
    place: tuple[str, int]
    """Where it stands: the same for all rows of a table."""
    header: Span | None = None
    """None, too, where the passage goes on with a table that began before it."""


@dataclass(frozen=True)
class Asked:
    """What sentences are held against: the question, the idf of its terms, and its vector."""

    text: str
    idf: Mapping[str, float]
    vector: Vector | None

    def worth(self, said: AbstractSet[str], before: AbstractSet[str]) -> float:
        """The share of the terms that is said, in part where only what stands before says so."""
        sure = covered(self.idf, said)
        return sure + BEFORE * (covered(self.idf, said | before) - sure)


def extracts(
    hits: Sequence[Hit], asked: Asked, analyzer: Analyzer, embedder: Embedder, most: int
) -> list[Extract]:
    """At most so many sentences of these hits, best first; the first has the most to say.

    Rows of a table count as one. Questions, headings and headers of tables are no answers; none
    where the hits have nothing else.
    """
    said = [extract for hit in hits for extract in _of(hit, asked, analyzer)]
    said.sort(key=lambda e: -e.worth)
    if asked.vector is not None and len(said) > 1:
        said = _by_meaning(said[:EMBEDDED], asked.vector, embedder)
    if not said:
        return []
    least = NEAR * said[0].worth
    near = [e for i, e in enumerate(said) if i == 0 or e.worth >= least]
    places = list(dict.fromkeys(e.place for e in near))[:most]
    return [e for e in near if e.place in places]


def _by_meaning(said: list[Extract], vector: Vector, embedder: Embedder) -> list[Extract]:
    """With what their cosine is worth; as they are where the embedder does not answer by now."""
    try:
        cosines = embedder.passages([e.text[:LONGEST] for e in said]) @ vector
    except EmbedderDown:
        return said
    with_meaning = [
        replace(e, worth=e.worth + MEANING * float(cosine))
        for e, cosine in zip(said, cosines, strict=True)
    ]
    return sorted(with_meaning, key=lambda e: -e.worth)


def _of(hit: Hit, asked: Asked, analyzer: Analyzer) -> list[Extract]:
    """The sentences and rows of a hit with their words' worth."""
    header_rows = hit.properties.get(TABLE_HEADER)
    above = f"{header_rows}\n" if isinstance(header_rows, str) else ""
    text = above + hit.text
    spans = sentences(text)
    texts = [text[start:end] for start, end in spans]
    terms = [_terms(sentence, analyzer) for sentence in texts]
    about = (hit.title, hit.heading, *hit.section.split("/"))
    titles, title = {_bare(part) for part in about}, _terms(hit.title, analyzer)
    under = _terms(" ".join(about[1:]), analyzer)
    depths, header_of = [_depth(sentence) for sentence in texts], headers(text, spans)
    wants_number = _ASKS_NUMBER.search(asked.text) is not None
    found: list[Extract] = []
    led: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    for at, ((start, end), sentence) in enumerate(zip(spans, texts, strict=True)):
        if _bare(sentence) in titles or _heads(at, depths):
            under = terms[at]  # of the section that begins here
        elif _QUESTION.search(sentence):
            led |= terms[at]
        elif start >= len(above) and at not in header_of.values():
            header = header_of.get(at)
            said = (
                title | under | led | terms[at] | (terms[header] if header is not None else set())
            )
            worth = asked.worth(said, before)
            has_number = _NUMBER.search(sentence) is not None
            if len(sentence) < SHORTEST and header is None and not has_number:
                worth = 0.0  # `Yes.`, and then why
            else:
                led = frozenset()
            worth += NUMBER * (wants_number and has_number)
            begin = hit.span.start - len(above)
            span, place = Span(start=begin + start, end=begin + end), (hit.chunk_id, start)
            if header is None:
                found.append(Extract(hit, span, sentence, worth, place))
            else:
                top, bottom = spans[header]
                named = Span(start=begin + top, end=begin + bottom) if top >= len(above) else None
                read = paired(texts[header], sentence)
                found.append(Extract(hit, span, read, worth, (hit.chunk_id, top), named))
        before = terms[at]
    return found


def _terms(text: str, analyzer: Analyzer) -> frozenset[str]:
    return frozenset(analyzer.analyze(text).split())


def _depth(text: str) -> int:
    """How many numbers a heading, or an entry of a list, begins with; 0 where it is neither."""
    found = _NUMBERED.match(text)
    return found[1].rstrip(".").count(".") + 1 if found else 0


def _heads(at: int, depths: Sequence[int]) -> bool:
    """Whether it is a heading: of numbered lines beside each other, those of a depth are a list."""
    beside = (*depths[max(0, at - 1) : at], *depths[at + 1 : at + 2])
    return depths[at] > 0 and depths[at] not in beside


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def nearest(said: str, hit: Hit, analyzer: Analyzer) -> Span:
    """Where in a hit the sentence stands that shares most terms with what is said of it."""
    wanted = set(analyzer.analyze(said).split())
    best, most = Span(start=hit.span.start, end=hit.span.end), 0.0
    for start, end in sentences(hit.text):
        terms = set(analyzer.analyze(hit.text[start:end]).split())
        shared = jaccard(terms, wanted)
        if shared > most:
            best, most = Span(start=hit.span.start + start, end=hit.span.start + end), shared
    return best
