"""Corrections of chunks: what a new version keeps, and what a new file keeps of them."""

import hashlib
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_store import MemoryStore
from own_messy import pdf
from pipeline_parts import Reader, Tiny, doing, held, look, make_context, paragraphs, submit
from pydantic import TypeAdapter

from callslip.errors import ChunkNotFound, Conflict, DocumentNotFound, InvalidCorrection
from callslip.ingestion.artifacts import CHUNKS, EXTRACTED
from callslip.ingestion.boxes import Box
from callslip.ingestion.context import StepContext
from callslip.ingestion.corrections.applying import with_corrections
from callslip.ingestion.corrections.corrected_version import Measures, correct
from callslip.ingestion.corrections.text_edits import (
    AROUND,
    TextEdit,
    corrections_of,
    edit_of,
    edits_between,
)
from callslip.ingestion.pages.areas import areas_of
from callslip.ingestion.values import Block, CorrectionOutcome, ExtractedText, Heading, Page
from callslip.messages.options import Options
from callslip.stores.blobs import Blobs, original_name
from callslip.stores.ledger import Accepted, Ledger, Submission, Transcript
from callslip.stores.ledger.documents import corrections as corrections_table
from callslip.stores.levels import PASSAGE
from callslip.stores.records import CollectionSchema, StoredChunk, VectorSpec


class CountingReader(Reader):
    """Counts the files that it reads."""

    def __init__(self) -> None:
        self.read = 0

    def extract(self, data: bytes, filename: str, fields: Mapping[str, str]) -> ExtractedText:
        self.read += 1
        return super().extract(data, filename, fields)


class Installation:
    """The steps of documents on real ledger and blobs."""

    def __init__(self, context: StepContext) -> None:
        self.context, self.ledger = context, context.ledger
        self.embedder = context.embedder
        assert isinstance(self.embedder, Tiny)
        self.do = doing(context)
        self.measures = Measures(context.tokenizer, context.embedder)

    def put(self, text: str, name: str = "a.txt") -> Accepted:
        item = submit(self.context, text, name)
        self.do(item.document_id, item.version)
        assert look(self.context, item).live_version == item.version
        return item

    def correct(self, item: Accepted, texts: dict[str, str], based_on: int | None = None) -> Any:
        made = correct(self.context.backend, self.measures, item.document_id, texts, based_on)
        self.do(made.document_id, made.version)
        return made

    def chunks(self, item: Accepted) -> list[StoredChunk]:
        """The visible passages in order of the text."""
        visible = self.ledger.chunks.visible(sorted(held(self.context, item)))
        store = self.context.store_of("memory")
        chunks = store.get_chunks("papers", list(visible), include_vector=True)
        return sorted((c for c in chunks if c.level == PASSAGE), key=lambda c: c.ordinal)

    def passages(self, item: Accepted) -> dict[str, StoredChunk]:
        """The visible passages by their first words."""
        return {c.body.split()[0]: c for c in self.chunks(item)}

    def text(self, item: Accepted) -> ExtractedText:
        live = self.ledger.documents.get(item.document_id).live_version
        assert live is not None
        name = self.ledger.documents.artifact(item.document_id, live, "extract")
        assert name is not None
        return EXTRACTED.load(self.context.blobs.read(item.document_id, name))


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Installation]:
    store = MemoryStore()
    schema = CollectionSchema("papers", VectorSpec(4))
    store.ensure_schema(schema)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="")
        yield Installation(make_context(ledger, Blobs(str(tmp_path / "blobs")), store))


def test_a_correction_changes_one_chunk_and_embeds_one_text(it: Installation) -> None:
    item = it.put(paragraphs("one", "two", "three"))
    before, given_before = it.passages(item), len(it.embedder.given)
    two = before["two0"]
    made = it.correct(item, {two.chunk_id: two.body.replace("two3 ", "twenty-three and more ")})
    after = it.passages(item)
    assert (made.version, made.fresh) == (2, True)
    assert after["two0"].body.startswith("two0 two1 two2 twenty-three and more two4")
    assert after["two0"].chunk_id != two.chunk_id
    for word in ("one0", "three0"):
        assert after[word].chunk_id == before[word].chunk_id
        assert (after[word].vector == before[word].vector).all()
    assert it.embedder.given[given_before:] == [after["two0"].body]
    text = it.text(item).text
    spans = it.ledger.chunks.seen([c.chunk_id for c in after.values()])
    for chunk in after.values():
        span = spans[chunk.chunk_id].span
        assert span is not None
        assert text[slice(*span)] == chunk.body


def test_the_original_stays_and_comes_back(it: Installation) -> None:
    source = paragraphs("one", "two", "three")
    item = it.put(source)
    before = it.passages(item)
    it.correct(item, {before["two0"].chunk_id: before["two0"].body + " appended"})
    (correction,) = it.ledger.versions.of(item.document_id)[0].record.corrections
    assert (correction.original, correction.replacement) == ("two29", "two29 appended")
    assert source[correction.start :].startswith("two29\n\nthree0")
    assert correction.left_out is None
    (mark,) = it.text(item).corrections
    assert it.text(item).text[mark.start : mark.end] == "two29 appended"
    given = len(it.embedder.given)
    back = it.ledger.versions.restore(item.document_id, 1)
    it.do(back.document_id, back.version)
    assert {c.chunk_id for c in it.passages(item).values()} == {c.chunk_id for c in before.values()}
    assert it.ledger.versions.of(item.document_id)[0].record.corrections == ()
    again = it.ledger.versions.restore(item.document_id, 2)
    it.do(again.document_id, again.version)
    assert it.text(item).corrections == (mark,)
    assert it.passages(item)["two0"].body.endswith("two29 appended")
    assert it.embedder.given[given:] == []


def test_a_file_is_read_once_however_often_it_is_corrected(it: Installation) -> None:
    reader: Any = CountingReader()
    object.__setattr__(it.context, "extractor", reader)
    item = it.put(paragraphs("one", "two"))
    for word in ("one0", "two0"):
        chunk = it.passages(item)[word]
        it.correct(item, {chunk.chunk_id: f"{chunk.body} more"})
    assert reader.read == 1
    assert it.text(item).text.count("more") == 2


def test_several_chunks_are_corrected_in_one_version(it: Installation) -> None:
    item = it.put(paragraphs("one", "two", "three"))
    found = it.passages(item)
    texts = {c.chunk_id: c.body.replace("0 ", "0 First ", 1) + " last" for c in found.values()}
    made = it.correct(item, texts)
    assert made.version == 2
    text = it.text(item).text
    assert text.count("First ") == text.count(" last") == 3
    assert sorted(c.body for c in it.passages(item).values()) == sorted(texts.values())


def test_a_chunk_may_become_longer_than_the_cutter_makes_it(it: Installation) -> None:
    item = it.put(paragraphs("one", "two", "three"))
    two = it.passages(item)["two0"]
    long = f"{two.body} {' '.join(f'new{n}' for n in range(200))}"
    it.correct(item, {two.chunk_id: long})
    assert it.passages(item)["two0"].body == long
    assert len(it.passages(item)) == 3


def test_a_new_file_keeps_the_corrections_that_apply_and_lists_the_others(it: Installation) -> None:
    words = ("one", "two", "three", "four")
    item = it.put(paragraphs(*words))
    found = it.passages(item)
    made = it.correct(item, {found[f"{w}0"].chunk_id: f"{found[f'{w}0'].body} {w}!" for w in words})
    kept, gone, right = "one29 one!", "two29", "three29 three!"
    changed = paragraphs("new", *words).replace(gone, "otherwise").replace("three29", right)
    again = it.put(changed)
    assert (made.version, again.version) == (2, 3)
    assert kept in it.text(item).text
    assert "four29 four!" in it.text(item).text
    assert it.text(item).text.count(right) == 1
    corrections = it.ledger.versions.of(item.document_id)[0].record.corrections
    assert {c.original: c.left_out for c in corrections} == {
        "one29": None,
        "two29": "not-found",
        "three29": "already-right",
        "four29": None,
    }
    (event,) = [
        e
        for e in it.ledger.events.of_document(item.document_id, after=0)
        if e.kind == "document.uncorrected"
    ]
    missed = sorted(c.correction_id for c in corrections if c.left_out)
    assert event.data is not None
    assert sorted(event.data["corrections"]) == missed
    (extract,) = [s for s in look(it.context, item).steps if s.step == "extract"]
    assert (extract.counts["corrections"], extract.counts["corrections_left_out"]) == (2, 2)
    warnings = [w for s in look(it.context, item).steps for w in s.warnings]
    assert warnings == ["left out: corrections whose original the text lacks (1)"]
    first = it.put(paragraphs(*words))  # the first file again: all apply
    assert it.text(first).text.count("!") == 4


def test_the_same_file_changes_nothing_and_a_new_title_keeps_corrections(it: Installation) -> None:
    item = it.put(paragraphs("one", "two"))
    one = it.passages(item)["one0"]
    it.correct(item, {one.chunk_id: f"{one.body} more"})
    assert not submit(it.context, paragraphs("one", "two")).fresh
    titled = submit(it.context, paragraphs("one", "two"), title="Numbers")
    it.do(titled.document_id, titled.version)
    assert "one29 more" in it.text(item).text
    assert it.ledger.versions.of(item.document_id)[0].record.corrections[0].left_out is None


def test_a_corrected_heading_renames_its_section(it: Installation) -> None:
    source = "\n\n".join(f"# Part {n}\n\n{paragraphs(w)}" for n, w in enumerate(("one", "two")))
    item = submit(it.context, source, "a.md")
    it.do(item.document_id, item.version)
    chunk = next(c for c in it.chunks(item) if c.section == "part 1")
    it.correct(item, {chunk.chunk_id: chunk.body.replace("Part 1", "Chapter")})
    sections = {c.section for c in it.chunks(item)}
    assert "chapter" in sections
    assert "part 1" not in sections


@pytest.mark.parametrize("text", ["", "  \n ", "\x00\u00ad"])
def test_a_correction_that_makes_a_chunk_empty_is_refused(it: Installation, text: str) -> None:
    item = it.put(paragraphs("one", "two"))
    with pytest.raises(InvalidCorrection, match="empty"):
        it.correct(item, {it.passages(item)["one0"].chunk_id: text})
    assert look(it.context, item).newest.version == 1


def test_a_chunk_longer_than_the_embedder_reads_is_refused(it: Installation) -> None:
    item = it.put(paragraphs("one", "two"))
    one = it.passages(item)["one0"]
    with pytest.raises(InvalidCorrection, match=r"1031 tokens .* reads 1000"):
        it.correct(item, {one.chunk_id: f"{one.body} {' '.join(['w'] * 1001)}"})
    with pytest.raises(InvalidCorrection, match="more than 20,000"):
        it.correct(item, {one.chunk_id: "w" * 20_001})
    assert look(it.context, item).newest.version == 1


def test_of_two_corrections_at_once_the_second_one_is_refused(it: Installation) -> None:
    item = it.put(paragraphs("one", "two"))
    one, two = it.passages(item)["one0"], it.passages(item)["two0"]
    correct(it.context.backend, it.measures, item.document_id, {one.chunk_id: f"{one.body} x"}, 1)
    with pytest.raises(Conflict, match="version 1 is not the newest one, which is version 2"):
        it.correct(item, {two.chunk_id: f"{two.body} x"}, 1)
    with pytest.raises(Conflict, match="version 2 is not live"):
        it.correct(item, {two.chunk_id: f"{two.body} x"})
    it.do(item.document_id, 2)
    it.correct(item, {two.chunk_id: f"{two.body} x"})
    assert it.text(item).text.count(" x") == 2


def test_unknown_chunks_documents_and_parents_are_named(it: Installation) -> None:
    item = it.put(paragraphs("one", "two"))
    with pytest.raises(ChunkNotFound, match=r"f{32}"):
        it.correct(item, {"f" * 32: "text"})
    passages = {c.chunk_id for c in it.passages(item).values()}
    (parent, *_) = held(it.context, item) - passages
    with pytest.raises(ChunkNotFound):
        it.correct(item, {parent: "text"})
    with pytest.raises(DocumentNotFound):
        correct(it.context.backend, it.measures, "e" * 32, {"f": "text"})
    one = it.passages(item)["one0"]
    assert not it.correct(item, {one.chunk_id: f" {one.body}\r\n"}).fresh


def test_overlapping_chunks_change_together_or_not_at_all(it: Installation) -> None:
    settings = it.context.settings.chunking.model_copy(update={"overlap_tokens": 8})
    backend = it.context.backend
    object.__setattr__(
        backend, "settings", backend.settings.model_copy(update={"chunking": settings})
    )
    item = it.put(" ".join(f"w{n}" for n in range(90)))
    chunks = it.chunks(item)
    first, second = chunks[:2]
    shared = second.body.split()[2]
    assert shared in first.body.split()
    with pytest.raises(InvalidCorrection, match="different ways"):
        it.correct(
            item,
            {
                first.chunk_id: first.body.replace(shared, "one"),
                second.chunk_id: second.body.replace(shared, "two"),
            },
        )
    it.correct(item, {first.chunk_id: first.body.replace(shared, "corrected")})
    after = it.chunks(item)
    assert [("corrected" in c.body) for c in after[:3]] == [True, True, False]
    assert [c.chunk_id for c in after[2:]] == [c.chunk_id for c in chunks[2:]]


def test_personal_data_in_a_correction_is_masked_where_texts_are(it: Installation) -> None:
    it.ledger.collections.set_options("papers", Options(scrub="text"))
    item = it.put(paragraphs("one", "two"))
    one = it.passages(item)["one0"]
    it.correct(item, {one.chunk_id: f"{one.body} ann@example.org"})
    assert "ann@example.org" not in it.text(item).text
    (correction,) = it.ledger.versions.of(item.document_id)[0].record.corrections
    assert "ann" not in correction.replacement


def test_no_correction_is_kept_of_a_removed_document(it: Installation) -> None:
    item = it.put(paragraphs("one", "two"))
    one = it.passages(item)["one0"]
    it.correct(item, {one.chunk_id: f"{one.body} secret"})
    it.ledger.documents.delete(item.document_id)
    it.ledger.documents.removed(item.document_id, {"before": {}, "after": {}})
    assert not any(v.record.corrections for v in it.ledger.versions.of(item.document_id))


def test_a_continued_table_keeps_its_header(it: Installation) -> None:
    rows = "\n".join(f"| item{n} is long | price {n} euros |" for n in range(30))
    item = submit(it.context, f"| Item | Price |\n|---|---|\n{rows}\n", "a.md")
    it.do(item.document_id, item.version)
    chunk = it.chunks(item)[-1]
    it.correct(item, {chunk.chunk_id: chunk.body.replace("item29", "the last item")})
    name = it.ledger.documents.artifact(item.document_id, 2, "chunk")
    assert name is not None
    last = CHUNKS.load(it.context.blobs.read(item.document_id, name))[-1]
    text = it.text(item).text
    assert last.header_of(text).startswith("| Item | Price |")
    assert "the last item" in last.read(text)


def test_a_corrected_chunk_of_a_pdf_stands_on_its_page(it: Installation) -> None:
    content = pdf("The leave is 2O days.", "The rate is low.")
    digest, document_id = hashlib.sha256(content).hexdigest(), uuid.uuid4().hex
    it.context.blobs.write(document_id, original_name(digest), content)
    sent = Submission("a.pdf", "a.pdf", "", digest, len(content), {})
    item = it.ledger.documents.submit("papers", sent, document_id)
    it.do(item.document_id, item.version)
    (chunk,) = it.chunks(item)
    it.correct(item, {chunk.chunk_id: chunk.body.replace("2O days", "twenty working days")})
    (after,) = it.chunks(item)
    text, backend = it.text(item).text, it.context.backend
    first, rate = text.index("twenty"), text.index("The rate")
    spans = [(first, first + len("twenty working days")), (rate, rate + len("The rate is low."))]
    areas = areas_of(backend, item.document_id, 2, spans)
    assert [{area.page for area in each} for each in areas] == [{1}, {2}]
    uncorrected = areas_of(backend, item.document_id, 1, [(chunk.start, chunk.end)])[0]
    assert [a[:3] for a in areas[1]] == [a[:3] for a in uncorrected if a.page == 2]
    pages = it.ledger.pages.of({item.document_id: 2})[item.document_id]
    assert pages.of(rate, rate + 3) == ("page", 2, 2, ())
    assert "twenty working days" in after.body


WORDS = st.sampled_from(
    ["leave", "rate", "연차", "규정", "x", ".", "|", "\n", " ", "  ", "25", "日本"]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=40).map("".join)


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_edits_make_the_new_text_and_apply_where_they_were_made(
    head: str, old: str, new: str, tail: str
) -> None:
    text = head + old + tail
    edits = edits_between(old, new, len(head))
    assert all(edit.start < edit.end for edit in edits)
    corrections, after = corrections_of(text, edits)
    assert after == head + new + tail
    result = with_corrections(ExtractedText(text, "text/plain"), corrections)
    assert result.text == after
    assert all(each.left_out is None for each in result.corrections)
    assert [after[c.start : c.end] for c in result.corrections] == [e.new for e in edits[::-1]]


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_spans_move_with_the_text(head: str, old: str, new: str, tail: str) -> None:
    text = head + old + tail
    whole = (0, len(text))
    extracted = ExtractedText(
        text,
        "application/pdf",
        headings=(Heading(0, len(head), 1),),
        pages=(Page(1, 0, len(head)), Page(2, len(head) + len(old), len(text))),
        blocks=(Block(*whole, "table", len(head)),),
        boxes=(Box(len(head), len(head) + len(old), 1, 0, 0, 9, 9),),
    )
    corrections, after = corrections_of(text, edits_between(old, new, len(head)))
    result = with_corrections(extracted, corrections)
    assert after[result.headings[0].start : result.headings[0].end] == head
    assert after[result.pages[1].start : result.pages[1].end] == tail
    assert (result.blocks[0].start, result.blocks[0].end) == (0, len(after))
    assert after[result.boxes[0].start : result.boxes[0].end] == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" ".join(f"a{n}" for n in range(3000)), " ".join(f"b{n}" for n in range(3000))),
        ("a b " * 5000, "b a " * 5000),
        ("||||" * 5000, "|||." * 5000),
        (" ".join(f"w{n % 120}" for n in range(900)), " ".join(f"w{n % 119}" for n in range(900))),
    ],
)
def test_texts_that_have_little_in_common_are_compared_in_bounded_time(old: str, new: str) -> None:
    began = time.process_time()
    edits = edits_between(old, new, 0)
    assert time.process_time() - began < 2
    assert corrections_of(old, edits)[1] == new


def test_a_text_that_occurs_twice_is_corrected_where_it_was_or_not_at_all() -> None:
    line = "The fee is 1O euros for everyone who asks for it in writing.\n"
    text = f"Start. {line}" + "x" * 5000 + f" {line}"
    at = text.index("1O")
    corrections, _ = corrections_of(text, [TextEdit(at, at + 2, "10")])
    (correction,) = corrections
    assert len(correction.before) <= AROUND * 8
    moved_on = "A new first page. " * 3 + text
    edit = edit_of(moved_on, correction)
    assert isinstance(edit, TextEdit)
    assert edit.start == moved_on.index("1O")
    twice = correction.context + "y" * 50 + correction.context
    assert edit_of("q" * 5000 + twice, correction) == "ambiguous"
    assert edit_of("nothing like it", correction) == "not-found"
    assert edit_of(correction.corrected_context, correction) == "already-right"
    assert with_corrections(ExtractedText("none", "text/plain"), corrections).corrections == (
        CorrectionOutcome(0, 0, "not-found"),
    )


def test_corrections_move_with_their_document(it: Installation) -> None:
    item = it.put(paragraphs("one", "two"))
    one = it.passages(item)["one0"]
    it.correct(item, {one.chunk_id: f"{one.body} more"})
    snapshot = it.ledger.transcripts.read(item.document_id)
    assert snapshot is not None
    content = TypeAdapter(Transcript).dump_json(snapshot.transcript)
    read = TypeAdapter(Transcript).validate_json(content)
    assert read.live.corrections == it.ledger.versions.of(item.document_id)[0].record.corrections


def test_a_version_has_a_limit_of_corrections(
    it: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corrections_table, "MOST_CORRECTIONS", 1)
    item = it.put(paragraphs("one", "two"))
    one, two = it.passages(item)["one0"], it.passages(item)["two0"]
    it.correct(item, {one.chunk_id: f"{one.body} more"})
    with pytest.raises(InvalidCorrection, match="would have 2 corrections, at most 1"):
        it.correct(item, {two.chunk_id: f"{two.body} more"})
    assert look(it.context, item).newest.version == 2
