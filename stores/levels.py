"""The levels of chunks: documents, their sections, and the passages of the sections."""

from callslip.stores.properties.filters import Condition

DOCUMENT, SECTION, PASSAGE = 0, 1, 2

PASSAGES = Condition("level", ">=", float(PASSAGE))
"""The filter of a search that names no level. A store may store passages separately."""
