"""The queues, here and nowhere else: a queue that nobody reads is how such systems die."""

from typing import Final, Literal

Role = Literal["api", "ingest", "search", "answer", "maintenance"]
"""The kinds of process; every one but the desk is a worker."""

INGEST: Final = "ingest"
EMBED: Final = "embed"
UPSERT: Final = "upsert"
SEARCH: Final = "search"
ANSWER: Final = "answer"
MAINTENANCE: Final = "maintenance"

BY_ROLE: Final[dict[Role, tuple[str, ...]]] = {
    "ingest": (INGEST, EMBED, UPSERT),
    "search": (SEARCH,),
    "answer": (ANSWER,),
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

PRESENCE: Final = "consumer"
"""Prefix of the keys `PRESENCE:QUEUE:HOST:PID` that say which worker reads which queue.

The value is how many processes the worker has for it.
"""
