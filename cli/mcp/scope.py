"""What the tools of an MCP server may use."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Scope:
    """The collection, tenant and folder of files that tools may use; None: any, or no files."""

    collection: str | None = None
    tenant: str | None = None
    files: Path | None = None

    def holds(self, record: dict[str, Any]) -> bool:
        """Whether a document or a search belongs to this collection and tenant."""
        return self.collection in (None, record["collection"]) and self.tenant in (
            None,
            record["tenant"],
        )
