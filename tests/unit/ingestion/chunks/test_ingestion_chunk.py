"""Chunks: they cover the text, keep to their length and section, and keep their ids."""

import re
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from callslip.config.settings import ChunkingSettings
from callslip.ingestion.chunks.chunk import chunk
from callslip.ingestion.sections.sectionize import sectionize
from callslip.ingestion.values import Block, Chunk, ExtractedText

SMALL = ChunkingSettings(target_tokens=90, max_tokens=100, overlap_tokens=12)


class Words:
    """A token per word or sign, starting at the space before it, as SentencePiece does."""

    def offsets(self, text: str) -> Sequence[int]:
        return [m.start() for m in re.finditer(r"(?:^|\s)?\w{1,6}|[^\w\s]", text)]

    def count(self, text: str) -> int:
        return len(self.offsets(text))


def cut(text: str, settings: ChunkingSettings = SMALL, document_id: str = "d") -> list[Chunk]:
    sections = sectionize(ExtractedText(text, "text/plain"))
    return chunk(text, sections, Words(), settings, document_id)


def sentences(count: int, word: str = "word") -> str:
    return " ".join(f"Sentence {n} has {word} in it and then it ends." for n in range(count))


def test_a_text_that_fits_is_one_chunk() -> None:
    text = "\n# One\nbody one\n# Two\nbody two\n"
    (only,) = cut(text)
    assert text[only.start : only.end] == text.strip()
    assert (only.section, only.heading, only.ordinal) == ("one", "One", 0)


def test_a_blank_text_has_no_chunk() -> None:
    assert cut(" \n\n ") == []


def test_chunks_end_at_sentences_and_overlap_by_whole_ones() -> None:
    text = sentences(60)
    chunks = cut(text)
    assert len(chunks) > 5
    for before, after in pairwise(chunks):
        assert text[before.start : before.end].endswith("ends.")
        assert text[after.start :].startswith("Sentence")
        assert before.start < after.start < before.end


def test_korean_sentences_are_cut_at_their_ends() -> None:
    text = " ".join(
        f"제{n}항의 신청은 서면으로 하여야 한다. 다만, 급하면 그러하지 아니하다." for n in range(60)
    )
    assert all(text[c.start : c.end].endswith("다.") for c in cut(text))


def test_paragraphs_are_preferred_to_sentences() -> None:
    text = "\n\n".join(sentences(7, word) for word in ("red", "green", "blue", "white"))
    assert all(
        len(set(re.findall("red|green|blue|white", text[c.start : c.end]))) == 1 for c in cut(text)
    )


def test_abbreviations_and_numbers_do_not_end_a_sentence() -> None:
    text = "As Dr. Kim showed in Fig. 3 of No. 12, e.g. The 3.5 percent, it holds. " * 40
    assert all(text[c.start : c.end].endswith("it holds.") for c in cut(text))


def test_no_chunk_reaches_across_a_section() -> None:
    text = f"# One\n{sentences(30, 'apple')}\n# Two\n{sentences(30, 'pear')}\n"
    for found in cut(text):
        content = text[found.start : found.end]
        assert ("apple" in content) != ("pear" in content)
        assert found.section == ("one" if "apple" in content else "two")


def test_short_sections_under_one_parent_share_a_chunk() -> None:
    text = "\n".join(f"# Heading {n}\nOne line of text here." for n in range(200))
    chunks = cut(text)
    assert len(chunks) < 40
    assert all(64 <= c.tokens <= 90 for c in chunks[:-1])
    assert chunks[0].section == "heading 0"


def test_a_bare_heading_goes_with_its_first_subsection_and_takes_its_name() -> None:
    text = f"# Part\n## First\n{sentences(20)}\n## Second\n{sentences(20)}\n"
    chunks = cut(text)
    assert text[chunks[0].start :].startswith("# Part")
    assert {c.section for c in chunks} == {"part/first", "part/second"}


def test_ids_depend_on_document_section_and_text_only() -> None:
    first = f"# One\n{sentences(30)}\n"
    before = cut(f"{first}# Two\n{sentences(30, 'old')}\n# Three\n{sentences(30, 'x')}")
    after = cut(f"{first}# Two\n{sentences(31, 'new')}\n# Three\n{sentences(30, 'x')}")
    kept = {c.chunk_id for c in before} & {c.chunk_id for c in after}
    unchanged = [c for c in before if c.section != "two"]
    assert {c.chunk_id for c in unchanged} == kept
    assert not kept & {c.chunk_id for c in cut(first, document_id="other")}
    assert all(re.fullmatch("[0-9a-f]{32}", c.chunk_id) for c in before)


def test_equal_passages_of_a_section_have_ids_of_their_own() -> None:
    chunks = cut("same words here. " * 200)
    assert len({c.chunk_id for c in chunks}) == len(chunks)


def table(rows: int) -> str:
    return "name | count\n---|---\n" + "".join(f"item {n} | {n}\n" for n in range(rows))


def cut_blocks(text: str, *found: str, kind: str = "table") -> list[Chunk]:
    """Chunks of a text in which these parts are tables, with two header rows, or code."""
    blocks = []
    for part in found:
        start = text.index(part)
        header = start + (part.index("item 0") if kind == "table" else 0)
        blocks.append(Block(start, start + len(part), kind, header))  # type: ignore[arg-type]
    sections = sectionize(ExtractedText(text, "text/plain", blocks=tuple(blocks)))
    return chunk(text, sections, Words(), SMALL, "d", blocks)


def test_a_table_that_fits_is_never_cut() -> None:
    for before in range(0, 20, 3):
        held = table(8)
        text = f"{sentences(before)}\n\n{held}\n{sentences(12, 'after')}"
        chunks = cut_blocks(text, held)
        assert any(held.strip() in text[c.start : c.end] for c in chunks)
        assert all(c.header == (0, 0) for c in chunks)


def test_a_long_table_is_cut_between_rows_and_its_header_is_repeated_outside_the_span() -> None:
    held = table(120)
    text = f"{sentences(5)}\n\n{held}\n{sentences(5, 'after')}"
    chunks = cut_blocks(text, held)
    inside = [c for c in chunks if c.header != (0, 0)]
    assert len(inside) >= 4
    for found in inside:
        content = text[found.start : found.end]
        assert content.startswith("item ")
        assert found.read(text) == f"name | count\n---|---\n{content}"
        assert found.tokens == Words().count(found.read(text)) <= SMALL.max_tokens
    rows = [line for c in chunks for line in text[c.start : c.end].splitlines() if "|" in line]
    assert rows == held.splitlines(), "each row is whole and stands in one chunk"


def test_a_table_with_an_endless_header_is_cut_without_repeating_it() -> None:
    held = f"{'column | ' * 60}\n" + "".join(f"item {n} | {n}\n" for n in range(60))
    assert all(c.header == (0, 0) for c in cut_blocks(held, held))


def test_code_that_fits_is_never_cut_and_longer_code_between_lines() -> None:
    short = "".join(f"    call(argument{n})\n" for n in range(8))
    text = f"{sentences(10)}\n{short}{sentences(10)}"
    assert any(short.strip() in text[c.start : c.end] for c in cut_blocks(text, short, kind="code"))
    long = "".join(f"call(argument{n}, other{n})\n" for n in range(60))
    chunks = cut_blocks(long, long, kind="code")
    assert "".join(f"{long[c.start : c.end]}\n" for c in chunks) == long


def test_numbers_of_lists_and_words_in_capitals_end_no_sentence_and_one() -> None:
    numbers = " ".join(f"{n}. Item {n} goes on to its end." for n in range(10, 90))
    assert all(text_starts_with_number(numbers, c) for c in cut(numbers))
    capitals = "The body of the cell holds DNA. " * 60
    assert all(capitals[c.start : c.end].endswith("DNA.") for c in cut(capitals))


def text_starts_with_number(text: str, found: Chunk) -> bool:
    return text[found.start : found.end][0].isdigit() and text[: found.end].endswith("end.")


settings = st.builds(
    lambda target, more, overlap: ChunkingSettings(
        target_tokens=target, max_tokens=target + more, overlap_tokens=min(overlap, target - 1)
    ),
    st.integers(32, 80),
    st.integers(0, 40),
    st.integers(0, 60),
)
texts = st.lists(
    st.sampled_from(
        ["# Heading\n", "## Deep\n", "\n\n", "\n", " ", "word ", "A sentence ends. ", "끝났다. ",
         "文は終わる。", "가나다라", "x" * 50, "!" * 40, "   " * 30, "\u3000", "123 "]
    ),
    max_size=400,
).map("".join)  # fmt: skip


@given(texts, settings)
def test_every_visible_character_is_in_a_chunk_of_bounded_length(
    text: str, settings: ChunkingSettings
) -> None:
    chunks = cut(text, settings)
    covered = bytearray(len(text))
    for number, found in enumerate(chunks):
        content = text[found.start : found.end]
        assert content
        assert content == content.strip()
        assert found.ordinal == number
        assert found.tokens <= settings.max_tokens
        covered[found.start : found.end] = b"\1" * len(content)
    assert all(seen or character.isspace() for seen, character in zip(covered, text, strict=True))
    assert len({c.chunk_id for c in chunks}) == len(chunks)
    assert [c.start for c in chunks] == sorted({c.start for c in chunks})


@given(texts, settings, st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=4))
def test_blocks_anywhere_lose_nothing_and_keep_to_the_length(
    text: str, settings: ChunkingSettings, picks: list[tuple[int, int]]
) -> None:
    starts = [0, *(m.end() for m in re.finditer("\n", text)), len(text)]
    blocks: list[Block] = []
    for first, count in sorted(picks):
        start, end = (
            starts[min(first, len(starts) - 1)],
            starts[min(first + count, len(starts) - 1)],
        )
        header = starts[min(first + count // 3, len(starts) - 1)]
        if start < end and (not blocks or blocks[-1].end <= start):
            blocks.append(Block(start, end, "table" if count % 2 else "code", header))
    extracted = ExtractedText(text, "text/plain", blocks=tuple(blocks))
    chunks = chunk(text, sectionize(extracted), Words(), settings, "d", blocks)
    covered = bytearray(len(text))
    for found in chunks:
        assert found.tokens <= settings.max_tokens
        covered[found.start : found.end] = b"\1" * (found.end - found.start)
    assert all(seen or character.isspace() for seen, character in zip(covered, text, strict=True))
    assert len({c.chunk_id for c in chunks}) == len(chunks)
