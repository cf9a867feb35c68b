"""Differences of two texts as edits, and edits as corrections that are found in other texts."""

import re
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
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

MOST_PAIRS = 10_000
"""Pairs of equal words up to which two texts are compared word by word. A passage of prose has
about 2,000; beyond it all from the first to the last different word is one edit."""

_PARTS = re.compile(r"\w+|\s+|[^\w\s]")


class TextEdit(NamedTuple):
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


def edits_between(old: str, new: str, start: int) -> list[TextEdit]:
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
        edits.append(TextEdit(at[i1], at[i2], "".join(others[j1:j2])))
    return edits


def _changes(words: list[str], others: list[str]) -> list[tuple[int, int, int, int]]:
    """Return the ranges of words that differ; merge those that are close to each other."""
    start = _shared(words, others)
    end = _shared(words[start:][::-1], others[start:][::-1])
    old, new = words[start : len(words) - end], others[start : len(others) - end]
    if not old and not new:
        return []
    if _pairs(old, new) > MOST_PAIRS:
        return [(start, start + len(old), start, start + len(new))]
    changes: list[tuple[int, int, int, int]] = []
    matcher = SequenceMatcher(str.isspace, old, new, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            continue
        if changes and i1 + start - changes[-1][1] < MERGED_GAP:
            i1, _, j1, _ = (at - start for at in changes.pop())
        changes.append((i1 + start, i2 + start, j1 + start, j2 + start))
    return changes


def _shared(words: Sequence[str], others: Sequence[str]) -> int:
    """Return the number of first words that are equal."""
    equal = takewhile(lambda pair: pair[0] == pair[1], zip(words, others, strict=False))
    return sum(1 for _ in equal)


def _pairs(words: Iterable[str], others: Iterable[str]) -> int:
    """Return the number of pairs of equal words, with which the time of a comparison grows."""
    counts, other_counts = Counter(words), Counter(others)
    return sum(n * other_counts[word] for word, n in counts.items() if not word.isspace())


def corrections_of(text: str, edits: Iterable[TextEdit]) -> tuple[Corrections, str]:
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
            if around >= MOST_AROUND or text.find(context, text.find(context) + 1) < 0:
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


def edit_of(text: str, correction: Correction) -> TextEdit | LeftOut:
    """Return a correction as an edit of a text, or why it does not apply.

    The correction is searched where it was, then in the whole text, then near where it was, where
    it must be unique.
    """
    context = correction.context
    there = correction.start - len(correction.before)
    if there < 0 or not text.startswith(context, there):
        there = text.find(context)
        if there < 0:
            return "already-right" if correction.corrected_context in text else "not-found"
        if text.find(context, there + 1) >= 0:
            near = list(_near(text, context, correction.start))
            if len(near) != 1:
                return "ambiguous"
            there = near[0]
    start = there + len(correction.before)
    return TextEdit(start, start + len(correction.original), correction.replacement)


def _near(text: str, context: str, at: int) -> Iterator[int]:
    start, end = max(0, at - NEAR), at + NEAR + len(context)
    position = text.find(context, start, end)
    while position >= 0:
        yield position
        position = text.find(context, position + 1, end)
