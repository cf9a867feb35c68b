"""Keeps the cuts of a text that was corrected, so that its other chunks stay as they are."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from callslip.ingestion.chunks.chunk import Tokenizer
from callslip.ingestion.chunks.chunk_ids import Ids
from callslip.ingestion.corrections.applying import moved
from callslip.ingestion.corrections.text_edits import TextEdit, edit_of
from callslip.ingestion.values import Chunk
from callslip.stores.ledger.base.corrections import Correction


def edits_of(before: str, corrections: Iterable[Correction], after: str) -> list[TextEdit] | None:
    """Return the edits of corrections that make the text `before` into `after`; None if not."""
    edits, text = [], before
    for correction in corrections:
        edit = edit_of(text, correction)
        if not isinstance(edit, TextEdit):
            return None
        edits.append(edit)
        text = edit.apply(text)
    return edits if text == after else None


def repeated_cuts(
    document_id: str,
    text: str,
    chunks: Sequence[Chunk],
    edits: Sequence[TextEdit],
    tokenizer: Tokenizer,
) -> list[Chunk]:
    """Return the chunks of the text before the edits as chunks of `text`, which is after them.

    A chunk whose content is the same keeps its id. One that an edit leaves empty is gone.
    """
    ids, repeated = Ids(document_id), list[Chunk]()
    for chunk in chunks:
        start, end = _stripped(text, moved(chunk.start, edits), moved(chunk.end, edits))
        if start == end:
            continue
        header = (moved(chunk.header[0], edits), moved(chunk.header[1], edits))
        moved_chunk = replace(chunk, ordinal=len(repeated), start=start, end=end, header=header)
        rows = text[slice(*header)]
        parts = [text[start:end]] if header == (0, 0) else [rows, text[start:end]]
        chunk_id = ids.of(chunk.section, *parts)
        tokens = chunk.tokens
        if chunk_id != chunk.chunk_id:
            tokens = len(tokenizer.offsets(moved_chunk.read(text)))
        repeated.append(replace(moved_chunk, chunk_id=chunk_id, tokens=tokens))
    return repeated


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span without outer white space."""
    content = text[start:end]
    start += len(content) - len(content.lstrip())
    return start, start + len(content.strip())
