"""FAQ over an engine and any store, with vectors that point where the texts say."""

from collections.abc import Sequence

from callslip.compat.context import AdapterContext
from callslip.compat.faq import entries
from callslip.compat.faq.collections import made, sibling
from callslip.compat.faq.entries import Counts
from callslip.compat.faq.rows import Row
from callslip.config.sections.faq import STRATEGIES, Strategy


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
    context: AdapterContext,
    name: str,
    rows: Sequence[Row] = ROWS,
    strategies: Sequence[Strategy] = STRATEGIES,
) -> dict[str, Counts]:
    """Write the rows into the collections of the FAQ, which are made where they are missing."""
    kind = context.store_of("").kind
    records = made(context, [sibling(name, s) for s in strategies], kind)
    return {
        s: entries.put(context, record, s, rows)
        for s, record in zip(strategies, records, strict=True)
    }
