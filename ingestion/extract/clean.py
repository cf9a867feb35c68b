"""Cleans the raw text of a reader into the form that all later steps expect."""

import re
from dataclasses import replace
from itertools import pairwise

from callslip.errors import ExtractionLimit, GarbageText, NoText
from callslip.ingestion.boxes import Box
from callslip.ingestion.extract.sniff import PDF
from callslip.ingestion.values import Block, ExtractedText, Heading, Link, Page
from callslip.models.text.normalization import normalized

OF_FONTS = "Its fonts do not say which letters they draw: run OCR over the pages instead."
"""The advice for a PDF whose characters mean nothing."""

MAX_GARBAGE = 0.3
"""The maximum share of meaningless characters among those that are not white space. Real text has
less than .01, text in fonts without a Unicode map more than .9."""

_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_DROPPED = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]+"
)
_GARBAGE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd\ufffe\uffff\ue000-\uf8ff\ud800-\udfff]")
_ANY = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u2028\u2029\ud800-\udfff\ue000-\uf8ff\ufeff\ufff9-\uffff]"
)
"""Matches all that the three patterns above match, so that most texts are searched only once."""


def clean(text: str) -> str:
    """Return the text in NFC with `\\n` line ends.

    Tabs stay; other control characters, surrogates, soft hyphens and byte order marks do not.
    """
    text = _DROPPED.sub("", _LINE_ENDS.sub("\n", text))
    return normalized("NFC", text)


def tidy(raw: ExtractedText, max_chars: int) -> ExtractedText:
    """Clean the text, adjust its spans, and check that it is meaningful text.

    Raises NoText, GarbageText, or ExtractionLimit if the text is longer than `max_chars`.
    """
    if len(raw.text) > max_chars:
        raise ExtractionLimit(
            f"the file holds {len(raw.text):,} characters, more than {max_chars:,}",
            hint="Split the file, or raise extract.max_chars in the settings.",
        )
    if _ANY.search(raw.text):
        _refuse_garbage(raw)
        raw = _clean_with_spans(raw)
    elif normalized("NFC", raw.text) != raw.text:
        raw = _clean_with_spans(raw)
    if not raw.text or raw.text.isspace():
        raise NoText("the file holds no text")
    return replace(
        raw,
        title=_line(raw.title),
        properties={
            _line(k) or "": clean(v).strip() for k, v in raw.properties.items() if _line(k)
        },
    )


def _line(value: str | None) -> str | None:
    """Return the value as one clean line, or None if nothing remains."""
    return (" ".join(clean(value).split()) or None) if value else None


def _refuse_garbage(raw: ExtractedText) -> None:
    garbage = sum(1 for _ in _GARBAGE.finditer(raw.text))
    visible = sum(map(len, raw.text.split()))
    if garbage > MAX_GARBAGE * visible:
        raise GarbageText(
            f"{garbage} of {visible} characters mean nothing",
            hint=OF_FONTS if raw.media_type == PDF else None,
        )


def _clean_with_spans(raw: ExtractedText) -> ExtractedText:
    """Clean the text piece by piece between the ends of spans, to know each end in the new text.

    Readers put the ends of spans at the edges of words, so NFC composes nothing across an end.
    """
    spans: list[Heading | Page | Block | Link | Box] = [*raw.headings, *raw.pages, *raw.blocks]
    spans += raw.links
    spans += raw.boxes
    ends = {s.start for s in spans} | {s.end for s in spans} | {b.header for b in raw.blocks}
    marks = sorted({0, len(raw.text)} | ends)
    pieces: list[str] = []
    at = {0: 0}
    length = 0
    for start, end in pairwise(marks):
        piece = clean(raw.text[start:end])
        pieces.append(piece)
        length += len(piece)
        at[end] = length
    return replace(
        raw,
        text="".join(pieces),
        headings=tuple(replace(h, start=at[h.start], end=at[h.end]) for h in raw.headings),
        pages=tuple(Page(p.number, at[p.start], at[p.end], p.label) for p in raw.pages),
        blocks=tuple(Block(at[b.start], at[b.end], b.kind, at[b.header]) for b in raw.blocks),
        links=tuple(Link(at[each.start], at[each.end], each.target) for each in raw.links),
        boxes=tuple(b._replace(start=at[b.start], end=at[b.end]) for b in raw.boxes),
    )
