"""Cutting documents into numbered chunks of about 100 words, as the original does.

Lines stay whole, and a chunk is closed when the next line would take it past 150 words. The skill
that reads the chunks cuts the same texts again by itself, so words are counted as it counts them:
every single space begins another one.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from retrieval.sentences import sentences

MOST_WORDS = 150


class Chunk(NamedTuple):
    """A part of a document; `name` is its number among all of them, such as `26.txt`."""

    name: str
    file_id: str
    text: str


def chunks(documents: Iterable[tuple[str, str]]) -> Iterator[Chunk]:
    """The chunks of documents, each an id and a text; the numbers go on from one to the next."""
    number = 0
    for file_id, text in documents:
        for part in cut(text):
            number += 1
            yield Chunk(f"{number}.txt", file_id, part)


def cut(text: str) -> Iterator[str]:
    """The chunks of one text. None is empty, and every word is in one of them, in its order."""
    kept: list[str] = []
    counted = words = 0
    for line, closes in _units(text):
        more = len(line.split())
        if not more:  # counts only where something follows it
            if kept:
                kept.append("")
                counted += line.count(" ") + 1
            continue
        most = max(counted + line.rstrip().count(" ") + 1, words + more)
        if kept and (closes or most > MOST_WORDS):
            yield "\n".join(kept).strip()
            kept, counted, words = [], 0, 0
        kept.append(line)
        counted += (line if len(kept) > 1 else line.lstrip()).count(" ") + 1
        words += more
    if kept:
        yield "\n".join(kept).strip()


def lines(text: str) -> Iterator[str]:
    """The lines of a text; those too long for a chunk as the sentences that they are made of."""
    return (line for line, _ in _units(text))


def _units(text: str) -> Iterator[tuple[str, bool]]:
    """Lines and sentences, and whether one begins a line that no chunk can take whole."""
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not _is_long(line):
            yield line, False
            continue
        closes = True
        for sentence in _sentences(line):
            for part in _parts(sentence) if _is_long(sentence) else (sentence,):
                yield part, closes
                closes = False


def _is_long(line: str) -> bool:
    return max(line.strip().count(" ") + 1, len(line.split())) > MOST_WORDS


def _sentences(line: str) -> Iterator[str]:
    starts = [span.start for span in sentences(line)][1:]
    for start, end in zip([0, *starts], [*starts, len(line)], strict=True):
        yield " ".join(line[start:end].split())


def _parts(sentence: str) -> Iterator[str]:
    words = sentence.split()
    for start in range(0, len(words), MOST_WORDS):
        yield " ".join(words[start : start + MOST_WORDS])
