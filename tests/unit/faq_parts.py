"""FAQ over an engine and any store, with vectors that point where the texts say."""

from collections.abc import Sequence

from compat.faq import entries
from compat.faq.entries import Counts
from compat.faq.places import made, sibling
from compat.faq.rows import Row
from compat.floor import Floor
from config.faq import STRATEGIES, Strategy


def row(row_id: int | str, question: str, answer: str) -> Row:
    """A row; texts begin with the degrees that their vectors point to."""
    return Row.model_validate({"id": row_id, "question": question, "answer": answer})


ROWS = (
    row(1, "0 same", "90 across"),
    row(2, "45 half", "0 same"),
    row(3, "90 across", "180 against"),
    row("four", "180 against", "45 half"),
)
"""Against a question at 0: cosine 1, .7071, 0 and -1, in another order for the answers."""


def ingest(
    floor: Floor,
    name: str,
    rows: Sequence[Row] = ROWS,
    strategies: Sequence[Strategy] = STRATEGIES,
) -> dict[str, Counts]:
    """Write the rows into the collections of the FAQ, which are made where they are missing."""
    kind = floor.store_of("").kind
    records = made(floor, [sibling(name, s) for s in strategies], kind)
    return {
        s: entries.put(floor, record, s, rows)
        for s, record in zip(strategies, records, strict=True)
    }
