"""The title line that is embedded with a passage if the passage does not contain the title.

A passage from the middle of a text seldom states the topic of the text. docs/quality.md has the
measured effect.
"""

from collections.abc import Iterable

from callslip.ingestion.chunks.chunk import Tokenizer

HEAD = 400
"""The number of characters at the start of a passage that are searched for the title."""

LONGEST = 200
"""The maximum number of characters of a title line."""


def line_of(title: str) -> str:
    """Return the title as a line to prepend to passages; empty if there is no title."""
    line = " ".join(title.split())[:LONGEST].strip()
    return f"{line}\n" if line else ""


def line_of_stored(title: str, filename: str) -> str:
    """Return the title line of a stored chunk; empty if the title is only the file's name."""
    return "" if title == filename else line_of(title)


def contexts(
    line: str, passages: Iterable[tuple[str, int]], tokenizer: Tokenizer, most: int
) -> list[str]:
    """Return for each passage the title line `line` to embed with the passage, or "".

    `passages` are texts with their numbers of tokens, `most` is the number of tokens that the
    embedder reads. The line is left out if the passage contains the title, or if both together
    are too long.
    """
    room = most - len(tokenizer.offsets(line)) - 1
    return [
        line if tokens <= room and _lacks(passage, line) else "" for passage, tokens in passages
    ]


def _lacks(passage: str, line: str) -> bool:
    """Whether the start of the passage does not contain the title line."""
    return line.strip().casefold() not in " ".join(passage[:HEAD].split()).casefold()
