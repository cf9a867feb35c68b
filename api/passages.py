"""A passage in its document for /page/passage, with the sentence that an answer cited."""

import re
from dataclasses import dataclass

from werkzeug.datastructures import MultiDict

from api.documents import text_of
from api.marking import Passage, tighten, whole
from callslip.errors import DocumentNotFound, InvalidRequest
from models.language import lang
from retrieval.messages import Span
from retrieval.sentences import reflow
from stores.ledger import DocumentRecord
from tasks.process import ledger

SURROUNDINGS = 500
"""Characters before and after a passage in context."""

LONGEST = 100_000
"""Characters of a passage that are shown."""

LARGEST = 10**9
"""Numbers of characters and of versions beyond are refused: some databases hold no larger ones."""

_NOTHING = Passage((), before=False, after=False)
_CUT_AT_START, _CUT_AT_END = re.compile(r"^\S{1,30}\s"), re.compile(r"\s\S{1,30}$")
"""A word that the window of characters cut in two."""


@dataclass(frozen=True)
class Place:
    """Where a passage stands: characters of the text of a version, of the live one without it."""

    passage: Span
    sentence: Span | None
    version: int | None

    @classmethod
    def of(cls, args: MultiDict[str, str]) -> "Place":
        """The place in a query string; InvalidRequest names what is wrong."""
        passage = _span(args, "start", "end")
        sentence = _span(args, "from", "to") if "from" in args or "to" in args else None
        if sentence and not passage.start <= sentence.start < sentence.end <= passage.end:
            raise InvalidRequest("the sentence from `from` to `to` is not within the passage")
        version = _number(args, "version") if "version" in args else None
        if version == 0:
            raise InvalidRequest("version is less than 1")
        return cls(passage, sentence, version)


@dataclass(frozen=True)
class Reading:
    """A passage between what stands around it, whose characters in the text are `window`.

    `version` is the one that is shown where its text is not the live one's; `gone` is the one that
    was asked for where its text is not kept: then the live one is shown, and nothing is marked.
    """

    window: Span
    length: int
    lang: str | None
    before: str
    lead: Passage
    sentence: Passage
    rest: Passage
    after: str
    version: int | None = None
    gone: int | None = None


def read(record: DocumentRecord, place: Place, query: str) -> Reading:
    """The passage at a place, with the words of a query marked.

    Raises DocumentNotFound without such a version or any text, InvalidRequest beyond its end.
    """
    version = _other_than_live(record, place.version)
    if version is not None:
        try:
            text = text_of(record, version)
        except DocumentNotFound:
            return _near(text_of(record), place.passage, gone=version)
    else:
        text = text_of(record)
    start, end = place.passage.start, min(place.passage.end, place.passage.start + LONGEST)
    if start >= len(text) or (place.sentence and place.sentence.end > len(text)):
        raise InvalidRequest(f"the place lies beyond the end of the text, at {len(text):,}")
    window = _window(start, end, len(text))
    flowing, at = reflow(text[window.start : window.end]), window.start
    marked = place.sentence or Span(start=end, end=end)
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
        version=version,
    )


def _near(text: str, passage: Span, *, gone: int) -> Reading:
    """What stands there in the live version's text, which may be something else: unmarked."""
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
        gone=gone,
    )


def _other_than_live(record: DocumentRecord, version: int | None) -> int | None:
    """The version where its text is not the live one's; another may have the very same text."""
    live = record.live_version
    if version is None or version == live:
        return None
    documents = ledger().documents
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
    number = args.get(name, type=int)
    if number is None or not 0 <= number <= LARGEST:
        raise InvalidRequest(f"{name} is missing or is no number from 0 to {LARGEST:,}")
    return number
