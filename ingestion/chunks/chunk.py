"""Cuts sections into passages that fit the embedder.

A section shorter than `SHORT_SECTION` tokens is joined with the next section under the same parent,
or with its own first subsection, so that 200 one-line sections do not become 200 chunks and a
heading without text does not become a chunk. Otherwise no chunk crosses a section boundary.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Protocol

from callslip.config.settings import ChunkingSettings
from callslip.ingestion.chunks.chunk_ids import Ids
from callslip.ingestion.chunks.cutter import Cutter
from callslip.ingestion.chunks.previous_cuts import NEVER_CUT, PreviousCuts
from callslip.ingestion.chunks.token_scale import Scale
from callslip.ingestion.values import Block, Chunk, Section
from callslip.languages import DEFAULT, Codes

SHORT_SECTION = 64
"""The minimum number of tokens of a section that becomes a passage of its own."""


class Tokenizer(Protocol):
    """Measures the length of chunks; `models.e5.tokens.Tokenizer` implements this protocol."""

    def offsets(self, text: str) -> Sequence[int]:
        """Return the start of each token as a character offset, in ascending order.

        Two tokens may have the same start. A token may start at the space before its word.
        """
        ...


def chunk(
    text: str,
    sections: Sequence[Section],
    tokenizer: Tokenizer,
    settings: ChunkingSettings,
    document_id: str,
    blocks: Sequence[Block] = (),
    previous: PreviousCuts = NEVER_CUT,
    codes: Codes = DEFAULT,
) -> list[Chunk]:
    """Cut a text into chunks of about `target_tokens` and at most `max_tokens` tokens.

    Consecutive chunks of one section group overlap. A chunk's content is `text[start:end]`, without
    outer white space; the chunks together contain every other character. A text that fits one chunk
    becomes one chunk; a blank text becomes none.

    A block that fits a chunk is never cut. A longer table is cut between rows, and each chunk
    refers to the table's header rows, which count towards its length.

    A chunk id depends only on the document, the section path and the chunk's text, so an unchanged
    chunk keeps its id. The previous version's cuts are reused if the lengths allow it. The time is
    linear in the length of the text.
    """
    scale = Scale(text, tokenizer.offsets(text))
    cutter = Cutter(scale, settings, blocks, previous, codes)
    fits = scale.tokens(0, len(text)) <= settings.max_tokens
    groups = [list(sections)] if fits else _groups(scale, sections, previous)
    ids = Ids(document_id)
    chunks: list[Chunk] = []
    for stretch, group in enumerate(groups):
        for start, end in cutter.spans(group[0].start, group[-1].end):
            section = _owner(text, group, start)
            header = cutter.header(start)
            parts = (
                [text[start:end]] if header == (0, 0) else [text[slice(*header)], text[start:end]]
            )
            chunks.append(
                Chunk(
                    chunk_id=ids.of(section.path, *parts),
                    section=section.path,
                    heading=section.heading,
                    level=section.level,
                    ordinal=len(chunks),
                    start=start,
                    end=end,
                    tokens=scale.tokens(*header) + scale.tokens(start, end),
                    stretch=stretch,
                    header=header,
                )
            )
    return chunks


def _groups(
    scale: Scale, sections: Sequence[Section], previous: PreviousCuts
) -> Iterator[list[Section]]:
    """Group sections; a short section joins the next one under the same parent or under itself."""
    group: list[Section] = []
    for section in sections:
        if group:
            parents = {group[0].parent, *(member.path for member in group)}
            if section.parent not in parents or _is_full(scale, group, section, previous):
                yield group
                group = []
        group.append(section)
    if group:
        yield group


def _is_full(
    scale: Scale, group: list[Section], following: Section, previous: PreviousCuts
) -> bool:
    """Whether the group is long enough without the section that follows.

    The group may have half of `SHORT_SECTION` tokens, or twice as many, if it then ends at a cut of
    the previous version. Otherwise a new section would move the boundaries of all later groups.
    """
    tokens = scale.tokens(group[0].start, group[-1].end)
    if previous and tokens >= SHORT_SECTION // 2:
        if previous.cut_at(scale.text, following.start):
            return True
        with_it = scale.tokens(group[0].start, following.end)
        if with_it <= 2 * SHORT_SECTION and previous.cut_at(scale.text, following.end):
            return False
    return tokens >= SHORT_SECTION


def _owner(text: str, group: list[Section], start: int) -> Section:
    """Return the section in which a chunk starts; skip headings without text if text follows."""
    starts = [section.start for section in group]
    at = max(bisect_left(starts, start + 1) - 1, 0)
    if at == len(group) - 1:  # all but the first chunks of a long section
        return group[at]
    for section in group[at:]:
        body = text.find("\n", section.start, section.end)
        if body >= 0 and not text[body : section.end].isspace():
            return section
    return group[at]
