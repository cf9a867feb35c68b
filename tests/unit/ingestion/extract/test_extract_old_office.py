"""Workbooks and presentations of Office 97: their text in order, damage, passwords, bounds."""

import contextlib
import io
import random

import olefile
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from old_office_files import (
    atom,
    box,
    container,
    document,
    in_list,
    notes,
    ole,
    ppt,
    ppt_text,
    slide,
    summary,
    xls,
)

from callslip.config.settings import ExtractSettings
from callslip.errors import (
    BrokenFile,
    CallslipError,
    ExtractionLimit,
    NeedsPassword,
    NoText,
    UnsupportedType,
)
from callslip.ingestion.extract import extract
from callslip.ingestion.extract.sniff import PPT, XLS
from callslip.ingestion.values import ExtractedText

FEES = {
    "요금표": [["항목", "Fee", "Since"], ["정박료", 1200, (45352.0,)], [], ["Note: in KRW"]],
    "Second": [["open", True], [0.125, (45353.60416666666,)]],
}


def read(data: bytes, filename: str = "file", **limits: object) -> ExtractedText:
    return extract(data, filename, ExtractSettings.model_validate(limits))


def test_sheets_of_excel_97_are_pages_with_tables_dates_and_numbers() -> None:
    text = read(xls(FEES, title="Gebühren"), "fees.xls")
    assert text.text.strip().split("\n\n") == [
        "요금표",
        "항목 | Fee | Since\n정박료 | 1200 | 2024-03-01",
        "Note: in KRW",
        "Second",
        "open | True\n0.125 | 2024-03-02 14:30:00",
    ]
    assert [(page.number, page.label) for page in text.pages] == [(1, "요금표"), (2, "Second")]
    assert (text.media_type, text.title, text.warnings) == (XLS, "Gebühren", ())
    table = text.blocks[0]
    assert text.text[table.start : table.header] == "항목 | Fee | Since\n"


def test_what_is_drawn_on_a_sheet_is_left_out_and_counted() -> None:
    assert read(xls(FEES, 8, 5, 8)).warnings == ("left out: pictures (2), charts (1)",)


@pytest.mark.parametrize("page", [65001, 949, 1252])
def test_a_title_is_read_in_the_code_page_of_its_properties(page: int) -> None:
    title = "Gebühr" if page == 1252 else "요금 규정"
    content = {"\x05SummaryInformation": summary(title, page)}
    made = document(in_list(2, 256, ppt_text("Text")))
    assert read(_with(ppt([{1: made}]), content)).title == title


def _with(data: bytes, streams: dict[str, bytes]) -> bytes:
    """The presentation again, with further streams."""
    with olefile.OleFileIO(io.BytesIO(data)) as container_file:
        own = {"/".join(n): container_file.openstream(n).read() for n in container_file.listdir()}
    return ole(own | streams)


def test_properties_that_claim_millions_of_values_cost_no_time() -> None:
    hostile = bytearray(summary("Title"))
    hostile[52:56] = (0xFFFFFFFF).to_bytes(4, "little")  # the number of properties
    content = {"\x05SummaryInformation": bytes(hostile)}
    made = document(in_list(2, 256, ppt_text("Text")))
    assert read(_with(ppt([{1: made}]), content)).text.strip() == "Text"


def the_deck(**changes: object) -> bytes:
    """Two slides, saved twice: the first slide was changed after it was first saved."""
    titled = atom(0xF9E, (0).to_bytes(4, "little"))
    bullets = atom(0xF9E, (1).to_bytes(4, "little"))
    listed = [
        in_list(3, 256, ppt_text("항만 안내", 0), ppt_text("First point\n둘째 항목", 1)),
        in_list(4, 257, ppt_text("Prices", 0)),
    ]
    first = slide(box(ppt_text("free “box”")), box(titled), box(bullets), notes=256)
    old = slide(box(ppt_text("an old text")))
    noted = [in_list(5, 256)]
    said = notes(box(ppt_text("Say this aloud.", 2)), box(ppt_text("*")))
    second = slide(box(titled), container(0xF003, box(ppt_text("in a group"))))
    picture = container(0xF004, atom(0xF00A, bytes(8), instance=75))
    return ppt(
        [
            {1: document(*listed), 3: old, 4: slide(box(titled), picture)},
            {1: document(*listed, noted=noted), 3: first, 4: second, 5: said},
        ],
        **changes,  # type: ignore[arg-type]
    )


def test_slides_of_powerpoint_97_are_pages_with_their_title_first_and_notes_last() -> None:
    text = read(the_deck(title="Deck"), "deck.ppt")
    pages = [text.text[p.start : p.end].strip().split("\n\n") for p in text.pages]
    assert pages == [
        ["항만 안내", "free “box”", "First point\n둘째 항목", "Say this aloud."],
        ["Prices", "in a group"],
    ]
    assert [text.text[h.start : h.end] for h in text.headings] == ["항만 안내", "Prices"]
    assert (text.media_type, text.title, text.warnings) == (PPT, "Deck", ())


def test_a_slide_whose_object_is_lost_keeps_the_text_of_the_list_and_is_named() -> None:
    text = read(ppt([{1: document(in_list(9, 256, ppt_text("Kept", 0), ppt_text("too", 1)))}]))
    assert text.text.split() == ["Kept", "too"]
    assert text.warnings == ("left out: damaged slides (1)",)


def test_pictures_of_a_slide_are_counted() -> None:
    picture = container(0xF004, atom(0xF00A, bytes(8), instance=75))
    made = ppt([{1: document(in_list(2, 256)), 2: slide(box(ppt_text("Text")), picture)}])
    assert read(made).warnings == ("left out: pictures (1)",)


def test_an_encrypted_presentation_needs_its_password() -> None:
    with pytest.raises(NeedsPassword):
        read(the_deck(token=0xF3D1C4DF))


def test_edits_that_point_to_themselves_end() -> None:
    assert "Prices" in read(the_deck(loop=True)).text


def test_shapes_nested_beyond_all_measure_are_left_out_and_named() -> None:
    deep = box(ppt_text("deep"))
    for _ in range(3000):
        deep = container(0xF003, deep)
    made = ppt([{1: document(in_list(2, 256)), 2: slide(box(ppt_text("shallow")), deep)}])
    text = read(made)
    assert text.text.strip() == "shallow"
    assert text.warnings == ("left out: shapes that are nested too deeply (1)",)


def test_a_presentation_without_a_document_is_broken() -> None:
    with pytest.raises(BrokenFile, match="where its document begins"):
        read(ole({"PowerPoint Document": b""}), "a.ppt")
    with pytest.raises(BrokenFile, match="no saved edit"):
        read(ole({"PowerPoint Document": b"", "Current User": bytes(20)}), "a.ppt")


def test_empty_ones_hold_no_text() -> None:
    with pytest.raises(NoText):
        read(xls({"Sheet": []}), "a.xls")
    with pytest.raises(NoText):
        read(ppt([{1: document(in_list(2, 256)), 2: slide()}]), "a.ppt")


def test_a_wrong_name_is_a_warning_and_the_content_counts() -> None:
    text = read(xls(FEES), "fees.ppt")
    assert text.media_type == XLS
    assert text.warnings == (f"read as {XLS}, though the name ends in .ppt",)


def test_older_and_other_files_of_office_are_named_with_a_way_out() -> None:
    with pytest.raises(UnsupportedType, match="PowerPoint 95") as raised:
        read(ole({"PP40": b"x"}), "a.ppt")
    assert "save it as PDF" in raised.value.advice
    with pytest.raises(UnsupportedType, match="unknown kind"):
        read(ole({"Something": b"x"}), "a.ppt")


def test_the_longest_text_is_a_limit_here_too() -> None:
    with pytest.raises(ExtractionLimit):
        read(xls({"S": [["x" * 200]] * 20}), max_chars=1000)


@pytest.mark.parametrize("made", [xls(FEES, 8, title="T"), the_deck()], ids=["xls", "ppt"])
@given(seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=60)
def test_damage_ends_in_text_or_a_named_error(made: bytes, seed: int) -> None:
    chance = random.Random(seed)
    damaged = bytearray(made)
    for _ in range(chance.randint(1, 12)):
        damaged[chance.randrange(512, len(damaged))] = chance.randrange(256)
    end = chance.choice([len(made), chance.randrange(1, len(made))])
    with contextlib.suppress(CallslipError):
        assert read(bytes(damaged[:end])).text
