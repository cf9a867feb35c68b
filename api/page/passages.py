"""A passage in its document for /page/passage, with the sentence that an answer cited."""

import re
from dataclasses import dataclass
from typing import Any

from flask import url_for
from markupsafe import Markup
from werkzeug.datastructures import MultiDict

from callslip.api.http.context import current
from callslip.api.page.markdown import markup
from callslip.api.page.marking import Passage, tighten, whole
from callslip.api.v1.documents import extracted_of
from callslip.errors import DocumentNotFound, InvalidRequest
from callslip.ingestion.extract.sniff import MARKDOWN, PDF
from callslip.ingestion.pages.units import page_table
from callslip.ingestion.values import ExtractedText
from callslip.messages.values import whole_number
from callslip.models.text.language import lang
from callslip.retrieval.evidence.sentences import reflow
from callslip.retrieval.messages import Span
from callslip.retrieval.ranking.hits import pages_of
from callslip.stores.ledger import DocumentRecord
from callslip.stores.ledger.base.corrections import Correction

MOST_IMAGES = 3
"""The pages of a passage that are drawn."""

SURROUNDINGS = 500
"""Characters that the page shows before and after a passage."""

LONGEST = 100_000
"""The most characters of a passage that the page shows."""

LARGEST = 10**9
"""The largest number of a character or version in a request; some databases have no larger ones."""

_NOTHING = Passage((), before=False, after=False)
_CUT_AT_START, _CUT_AT_END = re.compile(r"^\S{1,30}\s"), re.compile(r"\s\S{1,30}$")
"""A word that the start or end of the window cut in two."""


@dataclass(frozen=True)
class PassageLocation:
    """The location of a passage in the text of `version`, by default the live version."""

    passage: Span
    sentence: Span | None
    version: int | None

    @classmethod
    def of(cls, args: MultiDict[str, str]) -> "PassageLocation":
        """Read the location from a query string; InvalidRequest names an invalid parameter."""
        passage = _span(args, "start", "end")
        sentence = _span(args, "from", "to") if "from" in args or "to" in args else None
        if sentence and not passage.start <= sentence.start < sentence.end <= passage.end:
            raise InvalidRequest("the sentence from `from` to `to` is not within the passage")
        version = _number(args, "version") if "version" in args else None
        if version == 0:
            raise InvalidRequest("version is less than 1")
        return cls(passage, sentence, version)


@dataclass(frozen=True)
class PageImage:
    """A page on which the passage stands: its name, its image with marks, and the file."""

    name: str
    url: str
    file: str


@dataclass(frozen=True)
class Reading:
    """A passage and the text around it; `window` is the span of both in the document's text.

    `version` is the shown version if its text differs from the live version's. `gone` is the
    requested version if its text is no longer stored: then the live text is shown, without marks.
    `markup` is the whole as Markdown, where the document is that. `images` are the pages of a PDF.
    `corrections` are those of the window, with what the reader of the file had.
    """

    window: Span
    length: int
    lang: str | None
    before: str
    lead: Passage
    sentence: Passage
    rest: Passage
    after: str
    title: str
    version: int | None = None
    gone: int | None = None
    markup: Markup | None = None
    images: tuple[PageImage, ...] = ()
    corrections: tuple[Correction, ...] = ()


def read(record: DocumentRecord, location: PassageLocation, query: str) -> Reading:
    """Read the passage at a location, and mark the words of a query.

    Raises DocumentNotFound if the version or its text does not exist, InvalidRequest if the
    location is beyond the end of the text.
    """
    version = _other_than_live(record, location.version)
    if version is not None:
        try:
            extracted = extracted_of(record, version)
        except DocumentNotFound:
            return _near(record, extracted_of(record), location.passage, gone=version)
    else:
        extracted = extracted_of(record)
    text = extracted.text
    start, end = location.passage.start, min(location.passage.end, location.passage.start + LONGEST)
    if start >= len(text) or (location.sentence and location.sentence.end > len(text)):
        raise InvalidRequest(f"the place lies beyond the end of the text, at {len(text):,}")
    window = _window(start, end, len(text))
    flowing, at = reflow(text[window.start : window.end]), window.start
    marked = location.sentence or Span(start=end, end=end)
    parts = [(start, marked.start), (marked.start, marked.end), (marked.end, end)]
    lead, sentence, rest = (whole(tighten(flowing[s - at : e - at]), query) for s, e in parts)
    return Reading(
        window=window,
        length=len(text),
        lang=lang(flowing),
        before=_before(flowing[: start - at], window),
        lead=lead,
        sentence=sentence,
        rest=rest,
        after=_after(flowing[end - at :], window, len(text)),
        title=_title(record, extracted),
        version=version,
        markup=_markup(extracted, window, Span(start=start, end=end), location.sentence, query),
        images=_images(record, version, extracted, location.sentence or Span(start=start, end=end)),
        corrections=_corrections(record, version, extracted, window),
    )


def _corrections(
    record: DocumentRecord, version: int | None, extracted: ExtractedText, window: Span
) -> tuple[Correction, ...]:
    """The corrections that changed the text of the window."""
    if not extracted.corrections:
        return ()
    number = version or record.live_version or record.newest.version
    made = current().ledger.documents.version(record.document_id, number).corrections
    return tuple(
        correction
        for correction, at in zip(made, extracted.corrections, strict=False)
        if at.left_out is None and at.start < window.end and window.start < at.end
    )


def _images(
    record: DocumentRecord, version: int | None, extracted: ExtractedText, span: Span
) -> tuple[PageImage, ...]:
    """The pages of a PDF on which a span stands; none for other formats."""
    if extracted.media_type != PDF:
        return ()
    pages = pages_of(page_table(extracted), span.start, span.end)
    if pages is None:
        return ()
    number = version or record.live_version or record.newest.version
    where: dict[str, Any] = {"document_id": record.document_id, "version": number}
    marks: dict[str, Any] = {"start": span.start, "end": span.end}
    shown = range(pages.first, min(pages.last + 1, pages.first + MOST_IMAGES))
    return tuple(
        PageImage(
            name=pages.model_copy(update={"first": n, "last": n, "labels": []}).short(),
            url=url_for("files.get_page", number=n, **where, **marks),
            file=url_for("files.get_file", show=True, **where, _anchor=f"page={n}"),
        )
        for n in shown
    )


def _markup(
    extracted: ExtractedText, window: Span, passage: Span, sentence: Span | None, query: str
) -> Markup | None:
    """The passage and the text around it, of Markdown; None if it can only be shown as text."""
    if extracted.media_type != MARKDOWN:
        return None
    text, start, end = extracted.text, passage.start, passage.end
    tables = (b for b in extracted.blocks if b.kind == "table" and b.header <= start < b.end)
    header = next((text[table.start : table.header] for table in tables), "")
    at = start - len(header)
    cited = (sentence.start - at, sentence.end - at) if sentence else None
    rendered = markup(header + text[start:end], query, sentence=cited)
    if rendered is None:
        return None
    before, after = (_around(text[s:e]) for s, e in ((window.start, start), (end, window.end)))
    template = Markup(
        '<div class="around">{}</div><div class="passage-text">{}</div><div class="around">{}</div>'
    )
    return template.format(before, rendered, after)


def _around(text: str) -> Markup:
    plain = Markup('<p class="running">{}</p>').format(tighten(text))
    return markup(text, "") or plain


def _title(record: DocumentRecord, extracted: ExtractedText) -> str:
    """The title that hits show."""
    return record.newest.title or extracted.title or record.newest.filename


def _near(record: DocumentRecord, extracted: ExtractedText, passage: Span, *, gone: int) -> Reading:
    """The live version's text at the same location, which may differ: without marks."""
    text = extracted.text
    start = min(passage.start, max(0, len(text) - 2 * SURROUNDINGS))
    window = _window(start, min(passage.end, start + LONGEST), len(text))
    flowing = reflow(text[window.start : window.end])
    return Reading(
        window=window,
        length=len(text),
        lang=lang(flowing),
        before=_after(_before(flowing, window), window, len(text)),
        lead=_NOTHING,
        sentence=_NOTHING,
        rest=_NOTHING,
        after="",
        title=_title(record, extracted),
        gone=gone,
    )


def _other_than_live(record: DocumentRecord, version: int | None) -> int | None:
    """The version if its text differs from the live version's, otherwise None."""
    live = record.live_version
    if version is None or version == live:
        return None
    documents = current().ledger.documents
    documents.version(record.document_id, version)
    cited = documents.artifact(record.document_id, version, "extract")
    if live and cited and cited == documents.artifact(record.document_id, live, "extract"):
        return None
    return version


def _window(start: int, end: int, length: int) -> Span:
    return Span(start=max(0, start - SURROUNDINGS), end=max(start, min(length, end + SURROUNDINGS)))


def _before(text: str, window: Span) -> str:
    return tighten(_CUT_AT_START.sub("", text) if window.start else text)


def _after(text: str, window: Span, length: int) -> str:
    return tighten(_CUT_AT_END.sub("", text) if window.end < length else text)


def _span(args: MultiDict[str, str], first: str, last: str) -> Span:
    start, end = _number(args, first), _number(args, last)
    if start > end:
        raise InvalidRequest(f"{first} lies behind {last}")
    return Span(start=start, end=end)


def _number(args: MultiDict[str, str], name: str) -> int:
    number = args.get(name, type=whole_number)
    if number is None or not 0 <= number <= LARGEST:
        raise InvalidRequest(f"{name} is missing or is no number from 0 to {LARGEST:,}")
    return number
