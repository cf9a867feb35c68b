"""Sections to passages that an embedder reads whole.

A section shorter than `SHORT_SECTION` tokens is taken together with the next one under the same
parent, or with its own first subsection, so that neither 200 one-line sections nor a chapter's bare
heading make a chunk each. Otherwise no chunk reaches across a section.
"""

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from config.settings import ChunkingSettings
from ingestion.boundaries import LINE, PARAGRAPH, SENTENCE, WORD, first_after, last_before
from ingestion.former import FormerCuts
from ingestion.parts import Chunk, Section

SHORT_SECTION = 64
"""Tokens under which a section is no passage of its own."""

SHORTEST_CUT = 0.6
"""Share of the target length that a chunk has at least when the text goes on."""


NEVER_CUT = FormerCuts()


class Tokenizer(Protocol):
    """What a chunk's length is measured with; `models.tokens.Tokenizer` is one."""

    def offsets(self, text: str) -> Sequence[int]:
        """Where each token starts, in characters, never descending.

        A token may start at the space before its word.
        """
        ...


def chunk(
    text: str,
    sections: Sequence[Section],
    tokenizer: Tokenizer,
    settings: ChunkingSettings,
    document_id: str,
    former: FormerCuts = NEVER_CUT,
) -> list[Chunk]:
    """Cut a text into chunks of about `target_tokens`, at most `max_tokens`, overlapping inside.

    `text[start:end]` is a chunk's content, without outer blanks; together the chunks hold every
    character that is not blank. A text that fits is one chunk, a blank text none. An id depends on
    the document, the section's path and the content alone, so that what did not change keeps it.
    Where the text was cut in the version before it is cut again if lengths allow it. Linear in the
    text.
    """
    scale = _Scale(text, tokenizer.offsets(text))
    cutter = _Cutter(scale, settings, former)
    fits = scale.tokens(0, len(text)) <= settings.max_tokens
    groups = [list(sections)] if fits else _groups(scale, sections, former)
    chunks: list[Chunk] = []
    seen: Counter[str] = Counter()
    for group in groups:
        for start, end in cutter.spans(group[0].start, group[-1].end):
            section = _owner(text, group, start)
            digest = _digest(document_id, section.path, text[start:end])
            seen[digest] += 1
            chunks.append(
                Chunk(
                    chunk_id=digest if seen[digest] == 1 else _digest(digest, str(seen[digest])),
                    section=section.path,
                    heading=section.heading,
                    level=section.level,
                    ordinal=len(chunks),
                    start=start,
                    end=end,
                    tokens=scale.tokens(start, end),
                )
            )
    return chunks


@dataclass(frozen=True)
class _Scale:
    """Characters to tokens and back."""

    text: str
    offsets: Sequence[int]

    def index(self, at: int) -> int:
        """The first token of the word at `at`, which may start at a blank before it."""
        while at > 0 and self.text[at - 1].isspace():
            at -= 1
        return bisect_left(self.offsets, at)

    def tokens(self, start: int, end: int) -> int:
        """How many tokens stand in a span."""
        return self.index(end) - self.index(start)

    def at(self, index: int, end: int) -> int:
        """Where a token starts, at most `end`."""
        return min(self.offsets[index], end) if index < len(self.offsets) else end


class _Cutter:
    def __init__(self, scale: _Scale, settings: ChunkingSettings, former: FormerCuts) -> None:
        self._scale = scale
        self._former = former
        self._max = settings.max_tokens
        self._target = settings.target_tokens
        self._overlap = min(settings.overlap_tokens, self._target // 2)

    def spans(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The chunks of one stretch of text, without outer blanks."""
        start, end = self._strip(start, end)
        last = self._scale.index(end)
        while start < end:
            first = self._scale.index(start)
            left = last - first
            if left <= self._max:
                yield start, end
                return
            # Two chunks of like length rather than a full one and a crumb.
            length = min(self._target, (left + self._overlap + 1) // 2)
            cut = self._kept(start, first, length, end) if self._former else None
            if cut is None:
                cut = self._cut(start, first, self._aim(first, length, end), end)
            yield self._strip(start, cut)
            start = self._strip(max(self._resume(first, cut), start + 1), end)[0]

    def _kept(self, start: int, first: int, length: int, end: int) -> int | None:
        """Where it was cut before, unless this chunk or the rest behind it would be a crumb."""
        scale, shortest = self._scale, int(length * SHORTEST_CUT)
        floor = max(scale.at(first + shortest, end), start + 1)
        limit = scale.at(first + self._max, end)
        cut = self._former.again(scale.text, start, limit)
        if cut is None or cut < floor:
            cut = self._former.first(scale.text, floor, limit)
        if cut is None or scale.tokens(cut, end) + self._overlap < shortest:
            return None
        return cut

    def _aim(self, first: int, length: int, end: int) -> tuple[int, int, int]:
        """The shortest that a chunk may be, where it is to be closed, and the longest; in tokens.

        So that two chunks end where it was cut before, if that is as far away as two.
        """
        if self._former:
            scale = self._scale
            near, far = scale.at(first + self._max, end), scale.at(first + 2 * self._target, end)
            cut = self._former.first(scale.text, near, far)
            if cut is not None:
                away = scale.index(cut) - first
                length = min(length, (away + self._overlap + 1) // 2)
                shortest = max(int(length * SHORTEST_CUT), away + self._overlap - self._max)
                longest = max(length, away - int(self._target * SHORTEST_CUT))
                return min(shortest, length), length, min(longest, self._max)
        return int(length * SHORTEST_CUT), length, self._max

    def _cut(self, start: int, first: int, lengths: tuple[int, int, int], end: int) -> int:
        """Where to end: the last paragraph, sentence, line or word that makes it long enough."""
        scale = self._scale
        floor, goal, limit = (max(scale.at(first + n, end), start + 1) for n in lengths)
        for boundary in (PARAGRAPH, SENTENCE, LINE, WORD):
            cut = last_before(boundary, scale.text, floor, goal)
            if cut is None:
                cut = first_after(boundary, scale.text, goal, limit)
            if cut is not None:
                return cut
        # In the middle of a word: its halves may have some more tokens than it had, hence not limit
        return goal

    def _resume(self, first: int, cut: int) -> int:
        """Where the next chunk starts: at most the overlap before the cut, at a boundary."""
        if not self._overlap:
            return cut
        scale = self._scale
        earliest = scale.at(max(first, scale.index(cut) - self._overlap), cut)
        for boundary in (PARAGRAPH, SENTENCE, LINE, WORD):
            start = first_after(boundary, scale.text, earliest, cut)
            if start is not None:
                return start
        return earliest

    def _strip(self, start: int, end: int) -> tuple[int, int]:
        text = self._scale.text
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        return start, end


def _groups(
    scale: _Scale, sections: Sequence[Section], former: FormerCuts
) -> Iterator[list[Section]]:
    """Sections, the short ones together with what follows under the same parent or themselves."""
    group: list[Section] = []
    for section in sections:
        if group:
            parents = {group[0].parent, *(member.path for member in group)}
            if section.parent not in parents or _is_full(scale, group, section, former):
                yield group
                group = []
        group.append(section)
    if group:
        yield group


def _is_full(scale: _Scale, group: list[Section], following: Section, former: FormerCuts) -> bool:
    """Whether the group is a passage without the section that follows.

    It may be half as long as a passage, or twice, in order to end where one ended before: otherwise
    a new section would move every group behind it.
    """
    tokens = scale.tokens(group[0].start, group[-1].end)
    if former and tokens >= SHORT_SECTION // 2:
        if former.cut_at(scale.text, following.start):
            return True
        with_it = scale.tokens(group[0].start, following.end)
        if with_it <= 2 * SHORT_SECTION and former.cut_at(scale.text, following.end):
            return False
    return tokens >= SHORT_SECTION


def _owner(text: str, group: list[Section], start: int) -> Section:
    """The section that a chunk starts in; not a bare heading if text of another one follows."""
    starts = [section.start for section in group]
    at = max(bisect_left(starts, start + 1) - 1, 0)
    if at == len(group) - 1:  # all but the first chunks of a long section
        return group[at]
    for section in group[at:]:
        body = text.find("\n", section.start, section.end)
        if body >= 0 and not text[body : section.end].isspace():
            return section
    return group[at]


def _digest(*parts: str) -> str:
    """32 hexadecimal digits of BLAKE2b; the lengths keep neighbours apart."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()
