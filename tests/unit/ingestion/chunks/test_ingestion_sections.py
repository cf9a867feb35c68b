"""Sections: they tile the text, nest, and come from lines that really are headings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.ingestion.sections.sectionize import sectionize
from callslip.ingestion.values import Block, ExtractedText, Heading, Section

BODY = "This is a paragraph of ordinary text that goes on for more than a line."


def sections(text: str, *headings: Heading) -> list[Section]:
    return sectionize(ExtractedText(text, "text/plain", headings=headings))


def outline(text: str) -> list[tuple[int, str]]:
    return [(s.level, s.heading) for s in sections(text) if s.level]


def paragraphs(*blocks: str) -> str:
    return "\n\n".join(blocks)


def test_a_text_without_headings_is_one_section_of_level_zero() -> None:
    assert sections(BODY) == [Section("", "", 0, 0, 0, len(BODY), None)]


def test_headings_of_the_format_win_over_patterns() -> None:
    text = "Start\nTop\nfoo\nDeep\n1. Not this\n\nTop\nbar"
    at = [Heading(6, 9, 1), Heading(14, 18, 4), Heading(32, 35, 1)]
    found = sections(text, *at)
    assert [(s.path, s.level, s.parent) for s in found] == [
        ("", 0, None),
        ("top", 1, None),
        ("top/deep", 2, "top"),
        ("top#2", 1, None),
    ]
    assert [s.order for s in found] == [0, 1, 2, 3]


def test_patterns_stand_below_a_lone_title() -> None:
    text = paragraphs("The Title", "1. One", BODY, "2. Two", BODY)
    found = sections(text, Heading(0, 9, 1))
    assert [s.path for s in found] == ["the title", "the title/1. one", "the title/2. two"]


def test_numbered_headings_nest() -> None:
    text = paragraphs("1. One", BODY, "1.1. Part", BODY, "1.2 Part", BODY, "2. Two", BODY)
    assert outline(text) == [(1, "1. One"), (2, "1.1. Part"), (2, "1.2 Part"), (1, "2. Two")]


def test_roman_letters_and_decimals_nest_in_this_order() -> None:
    blocks = ["I. Rules", "A. Scope", "1. Who", "2. What", "B. Terms", "II. Use", "A. First"]
    text = paragraphs(*(part for block in blocks for part in (block, BODY)))
    assert [level for level, _ in outline(text)] == [1, 2, 3, 3, 2, 1, 2]


def test_korean_statutes_nest_and_articles_in_sentences_are_text() -> None:
    text = (
        "제1장 총칙\n제1조(목적) 이 법은 목적을 정한다.\n제1조의2(정의) 뜻은 다음과 같다.\n"
        "제3조에 따라 신고한다.\n제2장 벌칙\n제1절 과태료\n제4조(벌칙) 벌한다.\n"
    )
    found = sections(text)
    assert [(s.level, s.heading) for s in found] == [
        (1, "제1장 총칙"), (2, "제1조(목적)"), (2, "제1조의2(정의)"),
        (1, "제2장 벌칙"), (2, "제1절 과태료"), (3, "제4조(벌칙)"),
    ]  # fmt: skip


def test_paragraphs_and_supplements_of_statutes_are_sections() -> None:
    text = (
        "제1편 통칙\n제1조\n제1항(원칙) 원칙은 이러하다.\n제2항 단서는 없다.\n"
        "부칙 <제1234호, 2020. 1. 1.>\n제1조(시행일) 공포한 날부터 시행한다.\n"
        "부칙에서 정한 바에 따른다.\n[별표 1] 과태료의 기준\n표의 내용\n"
    )
    assert outline(text) == [
        (1, "제1편 통칙"), (2, "제1조"), (3, "제1항(원칙)"),
        (1, "부칙 <제1234호, 2020. 1. 1.>"), (2, "제1조(시행일)"), (1, "[별표 1] 과태료의 기준"),
    ]  # fmt: skip


def test_parts_and_chapters_nest_by_their_first_appearance_and_numbers_start_again() -> None:
    blocks = ["PART 1 Preliminary", "Chapter I", "1. Title", "2. Terms", "Chapter II", "1. Who"]
    text = paragraphs(*(part for block in (*blocks, "Annex A") for part in (block, BODY)))
    assert outline(text) == [
        (1, "PART 1 Preliminary"), (2, "Chapter I"), (3, "1. Title"), (3, "2. Terms"),
        (2, "Chapter II"), (3, "1. Who"), (1, "Annex A"),
    ]  # fmt: skip


def test_sections_of_drug_labels_are_numbered_without_a_full_stop() -> None:
    blocks = ["1 INDICATIONS AND USAGE", "1.1 Adults", "2 WARNINGS", "2.1 Falls", "3 Overdose:"]
    text = paragraphs(*(part for block in blocks for part in (block, BODY)))
    assert outline(text) == [(block.split()[0].count(".") + 1, block) for block in blocks]
    assert outline(paragraphs("1 apple", BODY, "2 pears", BODY)) == []


def test_lines_that_stand_out_to_the_left_of_their_text_are_headings() -> None:
    body = f"   {BODY}\n   {BODY}"
    text = paragraphs("Introduction", body, "Basic Operation", body, "The AUTH state", body)
    assert [words for _, words in outline(text)] == [
        *("Introduction", "Basic Operation", "The AUTH state")
    ]
    assert outline(paragraphs("Introduction", body, "Basics", body)) == [], "two may be anything"
    running = paragraphs(*("RFC 1225          POP3          May 1991", body) * 4)
    assert outline(running) == []


def test_nothing_inside_code_or_a_table_is_a_heading() -> None:
    text = "# One\n```\n# comment\n```\n# Two\nbody\n"
    code = Block(text.index("```"), text.index("# Two"), "code", text.index("```"))
    found = sectionize(ExtractedText(text, "text/plain", blocks=(code,)))
    assert [s.heading for s in found] == ["One", "Two"]
    own = tuple(Heading(at, at + 5, 1) for at in (0, text.index("# com"), text.index("# Two")))
    found = sectionize(ExtractedText(text, "text/markdown", headings=own, blocks=(code,)))
    assert [s.heading for s in found] == ["One", "Two"]


def test_numbered_lines_are_believed_rather_than_the_type_of_a_pdf() -> None:
    text = paragraphs("I. Rules", BODY, "Figure 1", BODY, "II. Use", BODY, "Figure 2", "III. End")
    captions = tuple(
        Heading(at, at + 8, 1) for at in (text.index("Figure 1"), text.index("Figure 2"))
    )
    found = sectionize(ExtractedText(text, "application/pdf", headings=captions))
    assert [s.heading for s in found] == ["I. Rules", "II. Use", "III. End"]
    numbered = tuple(Heading(at := text.index(n), at + len(n), 1) for n in ("I. Rules", "II. Use"))
    found = sectionize(ExtractedText(text, "application/pdf", headings=(*numbered, *captions)))
    assert [s.heading for s in found] == ["I. Rules", "Figure 1", "II. Use", "Figure 2"]


def test_capitals_and_title_case_standing_alone_are_headings() -> None:
    text = paragraphs("GENERAL PROVISIONS", BODY, "Scope of the Rules", BODY)
    assert outline(text) == [(1, "GENERAL PROVISIONS"), (2, "Scope of the Rules")]


@pytest.mark.parametrize(
    "text",
    [
        "Buy:\n\n1. Milk and eggs\n2. Bread\n3. Butter",  # a list: no blank lines between
        paragraphs(BODY, "2024. Annual figures", BODY, "7. A number", BODY),  # does not count
        paragraphs("1. Introduction ........ 3", "2. Method ........ 7", BODY),  # contents
        paragraphs("1. Read this sentence.", BODY, "2. And this one.", BODY),  # sentences
        paragraphs("   1. Indented", BODY, "   2. Indented", BODY),
        paragraphs("Dear John Smith", "Thanks.", "Jane Doe"),  # nothing long follows
        paragraphs("Hello there", BODY),
        paragraphs("USA", BODY, "NOTE: THIS", BODY),
        "Some LINE\nIN THE MIDDLE\nof a paragraph",
    ],
)
def test_lines_that_only_look_like_headings_are_text(text: str) -> None:
    assert outline(text) == []


def test_a_contents_list_does_not_hide_the_headings_that_it_names() -> None:
    contents = "Contents\n1. One\n2. Two"
    text = paragraphs(contents, "1. One", BODY, "2. Two", BODY)
    assert outline(text) == [(1, "1. One"), (1, "2. Two")]


def test_paths_are_unique_and_hold_no_slash_of_a_heading() -> None:
    text = "# A/B\n# a/b\n# a-b#2\n# **Bold** `x`\n# \n"
    assert [s.path for s in sections(text)] == ["a-b", "a-b#2", "a-b#2#2", "bold x"]


lines = st.sampled_from(
    ["1. One", "1.1 Part", "2. Two", "II. Use", "I. Rules", "A. Letter", "제1조(목적)", "# H",
     "## H", "TITLE LINE", BODY, "", "", "  indented", "x"]
)  # fmt: skip


@given(st.lists(lines, max_size=40))
def test_sections_tile_any_text_with_unique_paths_and_real_parents(parts: list[str]) -> None:
    text = "\n".join(parts)
    found = sections(text)
    assert "".join(text[s.start : s.end] for s in found) == text
    paths = {s.path: s for s in found}
    assert len(paths) == len(found)
    for section in found:
        if section.parent is not None:
            parent = paths[section.parent]
            assert parent.order < section.order
            assert parent.level == section.level - 1


def test_thousands_of_equal_headings_and_one_huge_line_are_cut() -> None:
    many = "# same\nx\n" * 20_000
    assert len(sections(many)) == 20_000
    assert len(sections("word " * 1_000_000)) == 1


def test_headings_beside_many_blocks_take_linear_time() -> None:
    count, part = 20_000, "# a\nx\n"
    headings = [Heading(6 * n, 6 * n + 3, 1) for n in range(count)]
    blocks = [Block(6 * n + 4, 6 * n + 5, "code", 6 * n + 4) for n in range(count)]
    inner = Heading(4, 5, 1)  # in a block
    text = ExtractedText(part * count, "text/x", headings=(*headings, inner), blocks=tuple(blocks))
    assert len(sectionize(text)) == count  # comparing each with each took minutes
