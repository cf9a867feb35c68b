"""The queues, here and nowhere else: a queue that nobody reads is how such systems die."""

from typing import Final

INGEST: Final = "ingest"
EMBED: Final = "embed"
UPSERT: Final = "upsert"
SEARCH: Final = "search"
MAINTENANCE: Final = "maintenance"

BY_ROLE: Final[dict[str, tuple[str, ...]]] = {
    "ingest": (INGEST, EMBED, UPSERT),
    "search": (SEARCH,),
    "maintenance": (MAINTENANCE,),
}
"""Which worker reads which queues."""

ALL: Final = tuple(queue for queues in BY_ROLE.values() for queue in queues)

BY_STEP: Final = {
    "extract": INGEST,
    "sectionize": INGEST,
    "chunk": INGEST,
    "enrich": INGEST,
    "embed": EMBED,
    "upsert": UPSERT,
}
"""Where each step of a document waits."""
