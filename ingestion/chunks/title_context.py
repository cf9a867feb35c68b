"""The title line that is embedded with a passage if the passage does not contain the title.

A passage from the middle of a text seldom states the topic of the text. docs/quality.md has the
measured effect.
"""

HEAD = 400
"""The number of characters at the start of a passage that are searched for the title."""

LONGEST = 200
"""The maximum number of characters of a title line."""


def line_of(title: str) -> str:
    """Return the title as a line to prepend to passages; empty if there is no title."""
    line = " ".join(title.split())[:LONGEST].strip()
    return f"{line}\n" if line else ""


def lacks(passage: str, line: str) -> bool:
    """Whether the start of the passage does not contain the title line."""
    return line.strip().casefold() not in " ".join(passage[:HEAD].split()).casefold()
