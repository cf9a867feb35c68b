"""What a passage is embedded under: its document's title, where the passage does not say it.

A passage from the middle of a text seldom says what the text is about. docs/quality.md has what
that is worth.
"""

HEAD = 400
"""Characters of a passage in which the title is looked for."""

LONGEST = 200
"""Characters of a title that are put before a passage."""


def line_of(title: str) -> str:
    """The title as a line to be put before passages; empty where there is none."""
    line = " ".join(title.split())[:LONGEST].strip()
    return f"{line}\n" if line else ""


def lacks(passage: str, line: str) -> bool:
    """Whether the passage does not begin with what the line says."""
    return line.strip().casefold() not in " ".join(passage[:HEAD].split()).casefold()
