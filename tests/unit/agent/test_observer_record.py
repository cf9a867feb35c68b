"""The record of an answer has no text of a document."""

from callslip.agent.messages import Citation
from callslip.agent.nodes.observer import recorded


def test_a_recorded_address_has_no_text_of_the_sentence() -> None:
    fields = {"number": 1, "chunk_id": "a", "document_id": "d", "version": 1, "title": "T"}
    span = {"start": 0, "end": 5}
    citation = Citation.model_validate(
        {
            **fields,
            **{"filename": "f", "section": "", "heading": "H", "quote": "Leave", "span": span},
            **{"passage": span, "valid_from": None, "valid_to": None, "url": None},
            "source_url": "https://example.org/a#:~:text=Leave",
        }
    )
    record = recorded(citation)
    assert record["source_url"] == "https://example.org/a"
    assert not record.keys() & {"quote", "title", "heading", "section", "filename"}
