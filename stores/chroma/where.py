"""How atoms are written in Chroma's metadata, and what can be asked of them.

Filters are not translated for Chroma: its own read every row (1.7 s at 100,000 of which most
match, where an unfiltered question takes 11 ms), and it cannot say that a property is missing.
The keyword index answers them.
"""

from stores.atoms import Atom

ChromaWhere = dict[str, object]


def key(item: Atom) -> str:
    """The metadata key of an atom; no key of ours has a colon."""
    return f"{item.mark}:{item.name}"
