"""Refuses documents while those that wait are more work than the settings allow."""

import math
import time
from collections import Counter
from collections.abc import Callable

from callslip.config.sections.ingestion import IngestSettings
from callslip.errors import BacklogFull
from callslip.stores.ledger import FairQueue, Pace
from callslip.stores.ledger.base.fair_queue import LEAST_BYTES

FIRST_PACE = Pace(documents=0.05, size=math.inf)
"""The pace of an installation that has ingested nothing yet: a document in 20 s."""

LEAST = 64
"""So many documents may wait, whatever their estimated time is: by the time that they are ingested,
the pace is known.
"""

TENANT_SHARE = 2 / 3
"""The share of `ingest.max_backlog_minutes` that one tenant may use."""

AGAIN = 16
"""After the time of so many documents a refused client sends again."""

RETRY_SECONDS = 5.0, 60.0
"""Bounds of Retry-After."""

SHARE = 0.05
"""The most of a process's time that reading the ledger takes."""

USED_SECONDS = 0.2
"""What was read is used for so long at least. To read takes a seventh of the time of an upload."""


class Backlog:
    """The documents that wait, as this process knows them. Threads may share it.

    What was read is used for some time, which grows with the time that reading took.
    """

    def __init__(
        self,
        settings: IngestSettings,
        fair_queue: FairQueue,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._fair_queue, self._clock = settings, fair_queue, clock
        self._documents: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._pace = FIRST_PACE
        self._until = -math.inf

    def check(self) -> None:
        """Raise BacklogFull if too many documents wait."""
        self._read()
        self._check(
            *(self._documents.total(), self._bytes.total(), self._settings.max_backlog),
            "ingest.max_backlog",
        )

    def check_of(self, tenant_queue: str) -> None:
        """Raise BacklogFull if too many documents of this tenant wait."""
        self._read()
        waiting = self._documents[tenant_queue], self._bytes[tenant_queue]
        most = self._settings.max_backlog_per_tenant
        self._check(*waiting, most, "ingest.max_backlog_per_tenant", TENANT_SHARE)

    @property
    def is_long(self) -> bool:
        """Whether so many documents wait that the workers have enough to do for a while."""
        return self._documents.total() >= LEAST

    def add(self, tenant_queue: str, size: int) -> None:
        """Count a document of `size` bytes that this process has queued since it read the rest."""
        self._documents[tenant_queue] += 1
        self._bytes[tenant_queue] += max(size, LEAST_BYTES)

    def _check(
        self, documents: int, size: int, most: int, setting: str, share: float = 1.0
    ) -> None:
        if documents >= most:
            raise self._full(f"{most} documents are waiting, as many as {setting} allows")
        minutes = self._pace.seconds(documents, size) / 60
        if documents >= LEAST and minutes >= self._settings.max_backlog_minutes * share:
            raise self._full(
                f"{documents} documents are waiting, work of about {minutes:.0f} minutes;"
                f" ingest.max_backlog_minutes allows {self._settings.max_backlog_minutes * share:g}"
            )

    def _full(self, detail: str) -> BacklogFull:
        shortest, longest = RETRY_SECONDS
        again = self._pace.seconds(AGAIN, 0)
        return BacklogFull(detail, retry_after=min(longest, max(shortest, again)))

    def _read(self) -> None:
        began = self._clock()
        if began < self._until:
            return
        self._until = math.inf  # one thread reads, the others go on with what is known
        try:
            waiting = self._fair_queue.waiting()
            self._documents = Counter({queue: work.documents for queue, work in waiting.items()})
            self._bytes = Counter({queue: work.size for queue, work in waiting.items()})
            self._pace = self._fair_queue.pace() or FIRST_PACE
        finally:
            ended = self._clock()
            self._until = ended + max(USED_SECONDS, (ended - began) / SHARE)
