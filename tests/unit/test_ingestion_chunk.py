"""Chunks: they cover the text, keep to their length and section, and keep their ids."""

import re
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from config.settings import ChunkingSettings
from ingestion.chunk import chunk
from ingestion.parts import Chunk, ExtractedText
from ingestion.sectionize import sectionize

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
