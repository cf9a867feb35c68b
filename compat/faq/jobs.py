"""The jobs that workers run for the FAQ's endpoints."""

from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from callslip.compat.context import adapter_context
from callslip.compat.faq import entries
from callslip.compat.faq.rows import Row
from callslip.tasks.composition import Context

_ROWS = TypeAdapter(list[Row])


def write(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Write rows into existing collections; return the counts of rows for each collection.

    `request` has `rows`, and `collections`, which maps each collection's name to its strategy.
    """
    adapter, rows = adapter_context(context), _ROWS.validate_python(request["rows"])
    written = {}
    for name, strategy in request["collections"].items():
        record = adapter.ledger.collections.get(name)
        written[name] = asdict(entries.put(adapter, record, strategy, rows))
    return written
