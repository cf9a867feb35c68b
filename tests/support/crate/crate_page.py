"""The statements of docs/cratedb-hybrid-search.md, as they stand there."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "cratedb-hybrid-search.md"

NAMED = '"doc"."search"'
"""The table that they speak of."""


def statement(heading: str, table: str) -> str:
    """The first statement under a heading, on another table."""
    _, _, after = PAGE.read_text(encoding="utf-8").partition(f" {heading}\n")
    found = re.search(r"```sql\n(.*?)```", after, re.DOTALL)
    assert found, heading
    assert NAMED in found[1]
    return found[1].replace(NAMED, table)
