"""The levels of what is ingested: documents, their sections, and the passages of these."""

from stores.filters import Condition

DOCUMENT, SECTION, PASSAGE = 0, 1, 2

PASSAGES = Condition("level", ">=", float(PASSAGE))
"""What a search is for unless it names a level. A store may keep such chunks apart."""
