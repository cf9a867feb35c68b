"""The names of all Celery queues, and the process roles that consume them."""

from typing import Final, Literal

Role = Literal["api", "ingest", "search", "answer", "maintenance", "keyword"]
"""The kinds of process. All are workers except the servers `api` and `keyword`."""

INGEST: Final = "ingest"
EMBED: Final = "embed"
UPSERT: Final = "upsert"
ADAPTERS: Final = "adapters"
SEARCH: Final = "search"
ANSWER: Final = "answer"
MAINTENANCE: Final = "maintenance"

BY_ROLE: Final[dict[Role, tuple[str, ...]]] = {
    "ingest": (INGEST, EMBED, UPSERT, ADAPTERS),
    "search": (SEARCH,),
    "answer": (ANSWER,),
    "maintenance": (MAINTENANCE,),
}
"""The queues that each role consumes."""

ALL: Final = tuple(queue for queues in BY_ROLE.values() for queue in queues)

BY_STEP: Final = {
    "extract": INGEST,
    "sectionize": INGEST,
    "chunk": INGEST,
    "enrich": INGEST,
    "embed": EMBED,
    "upsert": UPSERT,
}
"""The queue of each ingestion step."""

PRESENCE: Final = "consumer"
"""Prefix of the keys `PRESENCE:QUEUE:HOST:PID`, each of which says that a worker consumes a queue.

The value is the number of processes that the worker has for the queue.
"""
