"""Tables of CrateDB's hybrid search specification that others made: attached, and only read.

docs/cratedb-hybrid-search.md has the specification, and what differs from the original.
"""

from compat.crate.attach import attach
from compat.crate.names import table_named

__all__ = ["attach", "table_named"]
