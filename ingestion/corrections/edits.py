"""Differences of two texts as edits, and edits as corrections that are found in other texts."""

import re
import time
import uuid
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from callslip.stores.ledger.base.corrections import Correction, Corrections
from callslip.vocabulary import LeftOut

AROUND = 24
"""The number of characters on either side of an edit that identify its position."""

MOST_AROUND = 192
"""The maximum number of them, if fewer occur more than once in the text."""

NEAR = 2000
"""Characters within which a text that occurs several times is taken for the same one."""

MERGED_GAP = 4
"""Edits with fewer equal words, spaces or signs between them become one edit."""

_PARTS = re.compile(r"\w+|\s+|[^\w\s]")


class Edit(NamedTuple):
    """The replacement of `text[start:end]`, which is not empty, by `new`."""

    start: int
    end: int
    new: str

    def apply(self, text: str) -> str:
        """Return the text after the edit."""
        return text[: self.start] + self.new + text[self.end :]

    def moved(self, at: int) -> int:
        """Return the position in the edited text of a position in the text.

        A position within the edit stays as far behind its start as the new text is long.
        """
        if at <= self.start:
            return at
        if at >= self.end:
            return at + len(self.new) - (self.end - self.start)
        return self.start + min(at - self.start, len(self.new))


def edits_between(old: str, new: str, start: int) -> list[Edit]:
    """Return the edits, in order, that make `old`, at `start` of a text, into `new`.

    Neither text is empty. An edit is whole words. An insertion replaces the word before it, or at
    the start the word after it, so that it belongs to this text and not to what stands beside it.
    """
    words, others = _PARTS.findall(old), _PARTS.findall(new)
    at = [start]
    for word in words:
        at.append(at[-1] + len(word))
    edits = []
    for i1, i2, j1, j2 in _changes(words, others):
        if i1 == i2 and i1 > 0:
            i1, j1 = i1 - 1, j1 - 1
        elif i1 == i2:
            i2, j2 = i2 + 1, j2 + 1
        edits.append(Edit(at[i1], at[i2], "".join(others[j1:j2])))
    return edits


def _changes(words: list[str], others: list[str]) -> list[tuple[int, int, int, int]]:
    """Return the ranges of words that differ; merge those that are close to each other."""
    changes: list[tuple[int, int, int, int]] = []
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            continue
        if changes and i1 - changes[-1][1] < MERGED_GAP:
            i1, _, j1, _ = changes.pop()
        changes.append((i1, i2, j1, j2))
    return changes


def corrections_of(text: str, edits: Iterable[Edit]) -> tuple[Corrections, str]:
    """Return edits of one text as corrections, the last edit first, and the text after them.

    The edits do not overlap.
    """
    made, now = [], time.time()
    for edit in sorted(edits, reverse=True):
        around = AROUND
        while True:
            before = text[max(0, edit.start - around) : edit.start]
            after = text[edit.end : edit.end + around]
            context = before + text[edit.start : edit.end] + after
            if around >= MOST_AROUND or text.find(context) == text.rfind(context):
                break
            around *= 2
        made.append(
            Correction(
                correction_id=uuid.uuid4().hex[:16],
                start=edit.start,
                before=before,
                original=text[edit.start : edit.end],
                replacement=edit.new,
                after=after,
                made_at=now,
            )
        )
        text = edit.apply(text)
    return tuple(made), text


def edit_of(text: str, correction: Correction) -> Edit | LeftOut:
    """Return a correction as an edit of a text, or why it does not apply.

    The correction is searched where it was, then in the whole text, then near where it was, where
    it must be unique.
    """
    context = correction.context
    there = correction.start - len(correction.before)
    if there < 0 or not text.startswith(context, there):
        there = text.find(context)
        if there < 0:
            return "already-right" if correction.corrected in text else "not-found"
        if text.rfind(context) != there:
            near = list(_near(text, context, correction.start))
            if len(near) != 1:
                return "ambiguous"
            there = near[0]
    start = there + len(correction.before)
    return Edit(start, start + len(correction.original), correction.replacement)


def _near(text: str, context: str, at: int) -> Iterator[int]:
    start, end = max(0, at - NEAR), at + NEAR + len(context)
    position = text.find(context, start, end)
    while position >= 0:
        yield position
        position = text.find(context, position + 1, end)
