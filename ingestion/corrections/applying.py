"""Applies corrections to an extracted text; moves its spans."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from callslip.ingestion.boxes import Box
from callslip.ingestion.corrections.text_edits import TextEdit, edit_of
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import Block, CorrectionOutcome, ExtractedText, Heading, Link, Page
from callslip.stores.ledger.base.corrections import Correction


def with_corrections(extracted: ExtractedText, corrections: Iterable[Correction]) -> ExtractedText:
    """Return the text with the corrections that apply to it, one after the other.

    Spans of headings, pages, blocks, links and lines move with the text. The result's `corrections`
    has what became of each.
    """
    text = extracted.text
    edits: list[TextEdit] = []
    outcomes: list[CorrectionOutcome] = []
    after: list[int] = []  # for each outcome: the number of edits up to and with it
    for correction in corrections:
        edit = edit_of(text, correction)
        if isinstance(edit, TextEdit):
            text = edit.apply(text)
            edits.append(edit)
            outcomes.append(CorrectionOutcome(edit.start, edit.start + len(edit.new)))
        else:
            outcomes.append(CorrectionOutcome(0, 0, edit))
        after.append(len(edits))
    return replace(
        _moved(extracted, edits),
        text=text,
        warnings=extracted.warnings + _warnings(outcomes),
        corrections=tuple(
            replace(each, start=moved(each.start, edits[n:]), end=moved(each.end, edits[n:]))
            if each.left_out is None
            else each
            for each, n in zip(outcomes, after, strict=True)
        ),
    )


def _warnings(outcomes: Iterable[CorrectionOutcome]) -> tuple[str, ...]:
    missed = sum(each.left_out not in (None, "already-right") for each in outcomes)
    return left_out({"corrections whose original the text lacks": missed})


def moved(at: int, edits: Iterable[TextEdit]) -> int:
    """Return a position of a text after edits, one after the other."""
    return reduce(lambda position, edit: edit.moved(position), edits, at)


def _moved(extracted: ExtractedText, edits: Sequence[TextEdit]) -> ExtractedText:
    """Return the extracted text with its spans after edits."""
    if not edits:
        return extracted
    headings, pages, blocks = extracted.headings, extracted.pages, extracted.blocks
    links, boxes = extracted.links, extracted.boxes
    spans: list[Heading | Page | Block | Link | Box] = [*headings, *pages, *blocks, *links]
    spans += boxes
    old = {s.start for s in spans} | {s.end for s in spans} | {b.header for b in blocks}
    positions = sorted(old)
    new = np.array(positions, np.int64)  # one pass for each edit, however many spans there are
    for edit in edits:
        within = edit.start + np.minimum(new - edit.start, len(edit.new))
        behind = new + (len(edit.new) - (edit.end - edit.start))
        new = np.where(new <= edit.start, new, np.where(new >= edit.end, behind, within))
    at = dict(zip(positions, new.tolist(), strict=True))
    return replace(
        extracted,
        headings=tuple(replace(h, start=at[h.start], end=at[h.end]) for h in headings),
        pages=tuple(Page(p.number, at[p.start], at[p.end], p.label) for p in pages),
        blocks=tuple(Block(at[b.start], at[b.end], b.kind, at[b.header]) for b in blocks),
        links=tuple(Link(at[each.start], at[each.end], each.target) for each in links),
        boxes=tuple(b._replace(start=at[b.start], end=at[b.end]) for b in boxes),
    )
