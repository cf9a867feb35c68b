"""Cutting documents into numbered chunks of about 100 words, as the original does.

Lines stay whole, and a chunk ends when the next line would extend it beyond 150 words. The skill
that reads the chunks cuts the same texts again, so this module counts words as that skill does:
every single space begins another word.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from callslip.retrieval.evidence.sentences import sentences

MOST_WORDS = 150


class Chunk(NamedTuple):
    """A part of a document; `name` is the number of the chunk among all chunks, as in `26.txt`."""

    name: str
    file_id: str
    text: str


def chunks(documents: Iterable[tuple[str, str]]) -> Iterator[Chunk]:
    """Iterate over the chunks of documents (id, text); numbers continue across documents."""
    number = 0
    for file_id, text in documents:
        for part in cut(text):
            number += 1
            yield Chunk(f"{number}.txt", file_id, part)


def cut(text: str) -> Iterator[str]:
    """Iterate over the chunks of a text; no chunk is empty, and each word is in one, in order."""
    current: list[str] = []
    counted = words = 0
    for line, closes in _units(text):
        more = len(line.split())
        if not more:  # a blank line counts only inside a chunk
            if current:
                current.append("")
                counted += line.count(" ") + 1
            continue
        most = max(counted + line.rstrip().count(" ") + 1, words + more)
        if current and (closes or most > MOST_WORDS):
            yield "\n".join(current).strip()
            current, counted, words = [], 0, 0
        current.append(line)
        counted += (line if len(current) > 1 else line.lstrip()).count(" ") + 1
        words += more
    if current:
        yield "\n".join(current).strip()


def lines(text: str) -> Iterator[str]:
    """Iterate over the lines of a text; cut a line that is too long for a chunk into sentences."""
    return (line for line, _ in _units(text))


def _units(text: str) -> Iterator[tuple[str, bool]]:
    """Iterate over lines and sentences; the flag is True for the first sentence of a long line."""
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
