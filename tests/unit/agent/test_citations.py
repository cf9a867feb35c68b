"""A citation is headed by the nearest heading above its sentence."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from backend_parts import backend_of
from ledger_moves import publish
from memory_store import MemoryStore
from page_parts import blobs_in, hit, make_collection, shelved

from callslip.agent.citations import Citations
from callslip.ingestion.artifacts import SECTIONS
from callslip.ingestion.sections.sectionize import sectionize
from callslip.ingestion.values import ExtractedText
from callslip.retrieval.messages import Hit, Span
from callslip.stores.backend import Backend

TEXT = """# Staff

## Leave

Leave lasts fourteen months.

### Pay

It is paid in full.

## Travel

Trains are preferred."""


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    with shelved(tmp_path) as ledger:
        yield backend_of(make_collection(ledger), MemoryStore(), blobs=blobs_in(tmp_path))


def passage(backend: Backend) -> Hit:
    """A passage from the second heading on, with more headings within."""
    item = publish(backend.ledger, TEXT, ["c1"])
    start = TEXT.index("## Leave")
    span = Span(start=start, end=len(TEXT))
    own = {"document_id": item.document_id, "heading": "Leave", "span": span}
    return hit(TEXT[start:]).model_copy(update=own)


def heading(backend: Backend, cited: Hit, sentence: str) -> str:
    citations = Citations.of([cited], backend)
    start = TEXT.index(sentence)
    citations.cite(cited, Span(start=start, end=start + len(sentence)))
    (citation,) = citations.all()
    assert citation.quote == sentence
    return citation.heading


def test_the_nearest_heading_above_a_sentence_heads_its_citation(backend: Backend) -> None:
    cited = passage(backend)
    sections = sectionize(ExtractedText(TEXT, "text/markdown"))
    backend.blobs.write(cited.document_id, "sectionize-artifact", SECTIONS.dump(sections))
    assert heading(backend, cited, "Leave lasts fourteen months.") == "Leave"
    assert heading(backend, cited, "It is paid in full.") == "Pay"
    assert heading(backend, cited, "Trains are preferred.") == "Travel"
    assert heading(backend, cited, TEXT[cited.span.start :]) == "Leave", "the whole passage"


@pytest.mark.parametrize("stored", [None, b"[{"])
def test_without_sections_the_heading_of_the_passage_stays(
    backend: Backend, stored: bytes | None
) -> None:
    cited = passage(backend)
    if stored is not None:
        backend.blobs.write(cited.document_id, "sectionize-artifact", stored)
    assert heading(backend, cited, "Trains are preferred.") == "Leave"
