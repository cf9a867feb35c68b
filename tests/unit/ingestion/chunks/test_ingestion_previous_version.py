"""Cuts are kept: an edit of a text changes the chunks beside it and no others."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipeline_parts import Words

from callslip.config.settings import ChunkingSettings
from callslip.ingestion.chunks.chunk import NEVER_CUT, chunk
from callslip.ingestion.chunks.previous_cuts import PreviousCuts
from callslip.ingestion.sections.sectionize import sectionize
from callslip.ingestion.values import Chunk, ExtractedText

DEFAULTS = ChunkingSettings()
SMALL = ChunkingSettings(target_tokens=40, max_tokens=48, overlap_tokens=6)


def cut(
    text: str, previous: PreviousCuts = NEVER_CUT, settings: ChunkingSettings = DEFAULTS
) -> list[Chunk]:
    sections = sectionize(ExtractedText(text, "text/plain"))
    return chunk(text, sections, Words(), settings, "d", previous=previous)


def contents(text: str, chunks: list[Chunk]) -> set[str]:
    return {text[c.start : c.end] for c in chunks}


def paragraph(dice: random.Random, least: int, most: int) -> str:
    """A paragraph of so many words, in sentences."""
    words = [f"w{dice.randrange(3000)}" for _ in range(dice.randint(least, most))]
    for at in range(9, len(words), 10):
        words[at] += "."
    return " ".join(words) + "."


def edited(dice: random.Random, paragraphs: list[str], least: int, most: int) -> list[str]:
    """One paragraph changed, replaced, put in or taken out."""
    at, new = dice.randrange(len(paragraphs)), paragraph(dice, least, most)
    changed = paragraphs[at].replace("w1", "changed", 3) + " And one more sentence."
    return dice.choice(
        [
            [*paragraphs[:at], changed, *paragraphs[at + 1 :]],
            [*paragraphs[:at], new, *paragraphs[at + 1 :]],
            [*paragraphs[:at], new, *paragraphs[at:]],
            [*paragraphs[:at], *paragraphs[at + 1 :]],
        ]
    )


@pytest.mark.long
@pytest.mark.parametrize(("least", "most"), [(5, 30), (20, 120), (100, 400)])
def test_an_edited_paragraph_of_a_long_section_changes_at_most_three_chunks(
    least: int, most: int
) -> None:
    dice = random.Random(f"{least} to {most}")
    paragraphs = [paragraph(dice, least, most) for _ in range(300)]
    text = "\n\n".join(paragraphs)
    chunks = cut(text)
    for _ in range(40):
        paragraphs = edited(dice, paragraphs, least, most)
        new = "\n\n".join(paragraphs)
        after = cut(new, PreviousCuts(text, chunks))
        assert len(contents(new, after) - contents(text, chunks)) <= 3
        text, chunks = new, after
    assert all(c.tokens <= DEFAULTS.max_tokens for c in chunks)
    assert len(chunks) <= 1.2 * len(cut(text)), "chunks become no crumbs, edit after edit"


def test_a_text_grows_sentence_by_sentence_without_crumbs() -> None:
    dice = random.Random("growing")
    text = paragraph(dice, 100, 100)
    chunks = cut(text)
    for _ in range(200):
        new = f"{text}\n\n{paragraph(dice, 5, 40)}"
        after = cut(new, PreviousCuts(text, chunks))
        assert len(contents(new, after) - contents(text, chunks)) <= 2
        text, chunks = new, after
    assert len(chunks) <= 1.3 * len(cut(text)) + 1


def test_ids_of_what_stands_behind_an_edit_stay() -> None:
    dice = random.Random("ids")
    paragraphs = [paragraph(dice, 30, 60) for _ in range(100)]
    text = "\n\n".join(paragraphs)
    before = cut(text)
    paragraphs[3] = f"{paragraphs[3]} {paragraph(dice, 50, 50)}"
    new = "\n\n".join(paragraphs)
    after = cut(new, PreviousCuts(text, before))
    changed = {c.chunk_id for c in after} - {c.chunk_id for c in before}
    assert 1 <= len(changed) <= 3
    assert [c.chunk_id for c in after[-10:]] == [c.chunk_id for c in before[-10:]]
    assert after[-1].start == before[-1].start + len(new) - len(text)


def test_the_same_text_is_cut_as_it_was() -> None:
    dice = random.Random("same")
    text = "\n\n".join(paragraph(dice, 5, 80) for _ in range(100))
    assert cut(text, PreviousCuts(text, cut(text))) == cut(text)


texts = st.lists(
    st.sampled_from(
        ["# Heading\n", "\n\n", "\n", " ", "word ", "A sentence ends. ", "끝났다. ", "文は終わる。",
         "x" * 30, "   " * 9, "\u3000", "123 "]
    ),
    max_size=300,
).map("".join)  # fmt: skip


@given(texts, texts, texts, texts)
def test_kept_cuts_or_not_every_visible_character_is_in_a_chunk_of_bounded_length(
    head: str, old: str, new: str, tail: str
) -> None:
    before, text = head + old + tail, head + new + tail
    chunks = cut(text, PreviousCuts(before, cut(before, settings=SMALL)), SMALL)
    covered = bytearray(len(text))
    for number, found in enumerate(chunks):
        content = text[found.start : found.end]
        assert content
        assert content == content.strip()
        assert found.ordinal == number
        assert found.tokens <= SMALL.max_tokens
        covered[found.start : found.end] = b"\1" * len(content)
    assert all(seen or character.isspace() for seen, character in zip(covered, text, strict=True))
    assert len({c.chunk_id for c in chunks}) == len(chunks)
    assert [c.start for c in chunks] == sorted({c.start for c in chunks})
