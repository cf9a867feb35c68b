"""Attaching existing tables that follow CrateDB's hybrid search specification, for reading only.

docs/cratedb-hybrid-search.md has the specification and the differences from the original.
"""

from callslip.compat.crate.attach import attach
from callslip.compat.crate.names import table_named

__all__ = ["attach", "table_named"]
