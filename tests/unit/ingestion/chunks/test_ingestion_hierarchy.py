"""Documents and sections as chunks: they hold their passages, and are made of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_ingestion_chunk import SMALL, Words, sentences

from callslip.ingestion.chunks.chunk import chunk
from callslip.ingestion.sections import hierarchy
from callslip.ingestion.sections.hierarchy import with_parents
from callslip.ingestion.sections.sectionize import sectionize
from callslip.ingestion.values import ExtractedText
from callslip.stores.levels import DOCUMENT, PASSAGE, SECTION
from callslip.stores.records import ChunkRecord, DocumentRecord

DOCUMENT_RECORD = DocumentRecord("d", "Title", "a.txt", {"kind": "law"})


def records(text: str, document: DocumentRecord = DOCUMENT_RECORD) -> list[ChunkRecord]:
    """A text's chunks of all levels; a passage's vector points to its number."""
    sections = sectionize(ExtractedText(text, "text/plain"))
    chunks = chunk(text, sections, Words(), SMALL, document.document_id)
    passages = [
        ChunkRecord(
            c.chunk_id,
            document.document_id,
            text[c.start : c.end],
            f"term{c.ordinal}",
            np.eye(len(chunks), dtype=np.float32)[c.ordinal],
            section=c.section,
            heading=c.heading,
            lang="ko" if c.ordinal == 0 else "en",
            ordinal=c.ordinal,
            start=c.start,
            end=c.end,
        )
        for c in chunks
    ]
    return with_parents(document, text, chunks, passages)


TEXT = f"# One\n{sentences(30)}\n# Two\n## Deep\n{sentences(20)}\n"


def test_a_document_holds_its_sections_and_a_section_its_passages() -> None:
    found = records(TEXT)
    by_id = {c.chunk_id: c for c in found}
    document, *rest = found
    assert (document.level, document.parent_id, document.section) == (DOCUMENT, "", "")
    assert document.body == TEXT.strip()
    assert document.properties == {"kind": "law"}
    sections = [c for c in rest if c.level == SECTION]
    assert [(c.section, c.heading, c.ordinal) for c in sections] == [
        ("one", "One", 0),
        ("two/deep", "Deep", 1),
    ]
    assert sections[1].body.startswith("# Two\n## Deep")
    assert {c.parent_id for c in sections} == {document.chunk_id}
    passages = [c for c in rest if c.level == PASSAGE]
    assert len(found) == 1 + len(sections) + len(passages)
    for passage in passages:
        parent = by_id[passage.parent_id]
        assert parent.level == SECTION
        assert passage.body in parent.body


def test_a_parent_is_the_mean_of_its_passages_and_has_their_terms_and_commonest_language() -> None:
    document, *rest = records(TEXT)
    passages = [c for c in rest if c.level == PASSAGE]
    assert np.allclose(document.vector, 1 / np.sqrt(len(passages)))
    assert np.linalg.norm(document.vector) == pytest.approx(1)
    assert document.terms.split() == [p.terms for p in passages]
    assert document.lang == "en"


def test_a_document_of_one_passage_has_its_vector() -> None:
    document, section, passage = records("One line of text.")
    assert document.vector is section.vector is passage.vector
    assert len({document.chunk_id, section.chunk_id, passage.chunk_id}) == 3


def test_vectors_that_cancel_each_other_leave_a_direction() -> None:
    one = np.array([1, 0], np.float32)
    assert np.array_equal(hierarchy.mean_of([one, -one]), one)


def test_a_long_section_is_several_and_a_long_document_its_beginning() -> None:
    text = "\n\n".join(sentences(40, f"word{n}") for n in range(60))
    document, *rest = records(text)
    assert len(text) > 4 * hierarchy.LONGEST
    assert hierarchy.LONGEST * 0.9 < len(document.body) <= hierarchy.LONGEST
    assert np.count_nonzero(document.vector) == sum(c.level == PASSAGE for c in rest)
    sections = [c for c in rest if c.level == SECTION]
    assert len(sections) > 4
    assert all(len(c.body) <= hierarchy.LONGEST for c in sections)


def test_ids_are_of_what_is_held_so_that_an_edit_changes_one_section_and_the_document() -> None:
    before = {c.chunk_id: c for c in records(TEXT)}
    after = records(TEXT.replace("# Two", "# Second"))
    new = [c for c in after if c.chunk_id not in before]
    assert {c.section for c in new if c.level} == {"second/deep"}
    assert {c.section for c in after if c.chunk_id in before} == {"one"}
    other = records(TEXT, DocumentRecord("e", "Title", "a.txt"))
    assert not {c.chunk_id for c in other} & before.keys()


def test_sections_that_say_the_same_have_ids_of_their_own() -> None:
    found = records("\n".join(["# Same", sentences(30)] * 3))
    assert len({c.chunk_id for c in found}) == len(found)


parts = st.lists(
    st.sampled_from(["# Head\n", "## Deep\n", "\n\n", sentences(3), sentences(12), "끝났다. "]),
    max_size=30,
).map("".join)


@given(parts)
def test_every_chunk_is_its_span_and_lies_within_its_parent(text: str) -> None:
    found = records(text)
    by_id = {c.chunk_id: c for c in found}
    assert len(by_id) == len(found)
    for record in found:
        assert text[record.start : record.end] == record.body
        if record.parent_id:
            parent = by_id[record.parent_id]
            assert found.index(parent) < found.index(record)
            assert parent.level == record.level - 1
            assert parent.start <= record.start
            assert record.end <= parent.end or len(parent.body) > hierarchy.LONGEST / 2
