"""Sections to passages that an embedder reads whole.

A section shorter than `SHORT_SECTION` tokens is taken together with the next one under the same
parent, or with its own first subsection, so that neither 200 one-line sections nor a chapter's bare
heading make a chunk each. Otherwise no chunk reaches across a section.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Protocol

from config.settings import ChunkingSettings
from ingestion.cutter import Cutter
from ingestion.former import NEVER_CUT, FormerCuts
from ingestion.identity import Ids
from ingestion.parts import Block, Chunk, Section
from ingestion.scale import Scale

SHORT_SECTION = 64
"""Tokens under which a section is no passage of its own."""


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
    blocks: Sequence[Block] = (),
    former: FormerCuts = NEVER_CUT,
) -> list[Chunk]:
    """Cut a text into chunks of about `target_tokens`, at most `max_tokens`, overlapping inside.

    `text[start:end]` is a chunk's content, without outer blanks; together the chunks hold every
    character that is not blank. A text that fits is one chunk, a blank text none. A block that fits
    a chunk is never cut; a longer table is cut between rows and each chunk names its header rows,
    which count to its length. An id depends on the document, the section's path and what the chunk
    says alone, so that what did not change keeps it. Where the text was cut in the version before
    it is cut again if lengths allow it. Linear in the text.
    """
    scale = Scale(text, tokenizer.offsets(text))
    cutter = Cutter(scale, settings, blocks, former)
    fits = scale.tokens(0, len(text)) <= settings.max_tokens
    groups = [list(sections)] if fits else _groups(scale, sections, former)
    ids = Ids(document_id)
    chunks: list[Chunk] = []
    for stretch, group in enumerate(groups):
        for start, end in cutter.spans(group[0].start, group[-1].end):
            section = _owner(text, group, start)
            header = cutter.header(start)
            said = (
                [text[start:end]] if header == (0, 0) else [text[slice(*header)], text[start:end]]
            )
            chunks.append(
                Chunk(
                    chunk_id=ids.of(section.path, *said),
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
    scale: Scale, sections: Sequence[Section], former: FormerCuts
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


def _is_full(scale: Scale, group: list[Section], following: Section, former: FormerCuts) -> bool:
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
