"""The ledger: the SQL database that owns the state of every document."""

from stores.ledger.chunks import Chunks
from stores.ledger.collections import Collections
from stores.ledger.database import Database
from stores.ledger.documents import Accepted, Documents
from stores.ledger.inventory import Inventory, Item
from stores.ledger.leases import Leases
from stores.ledger.moves import Move, Moves
from stores.ledger.receipts import Receipt, Receipts
from stores.ledger.records import (
    STEPS,
    Claim,
    CollectionRecord,
    DocumentRecord,
    DocumentState,
    Failure,
    Refusal,
    Step,
    StepRecord,
    Submission,
    VersionRecord,
)
from stores.ledger.source_runs import ItemRecord, Run, SourceRuns
from stores.ledger.sources import Outcome, SourceRecord, Sources
from stores.ledger.sweep import Stuck, Sweep
from stores.ledger.tenants import Tenants
from stores.ledger.transcripts import ChunkRow, Snapshot, Transcript, Transcripts
from stores.ledger.vectors import Vectors

__all__ = [
    "STEPS",
    "Accepted",
    "ChunkRow",
    "Claim",
    "CollectionRecord",
    "DocumentRecord",
    "DocumentState",
    "Failure",
    "Item",
    "ItemRecord",
    "Ledger",
    "Move",
    "Moves",
    "Outcome",
    "Receipt",
    "Refusal",
    "Run",
    "Snapshot",
    "SourceRecord",
    "Step",
    "StepRecord",
    "Stuck",
    "Submission",
    "Transcript",
    "VersionRecord",
]


class Ledger:
    """All of it over one database. One per process, made after the fork."""

    def __init__(self, url: str) -> None:
        self._database = Database(url)
        self.collections = Collections(self._database)
        self.tenants = Tenants(self._database)
        self.documents = Documents(self._database)
        self.leases = Leases(self._database)
        self.chunks = Chunks(self._database)
        self.vectors = Vectors(self._database)
        self.sweep = Sweep(self._database)
        self.inventory = Inventory(self._database)
        self.receipts = Receipts(self._database)
        self.moves = Moves(self._database)
        self.sources = Sources(self._database)
        self.source_runs = SourceRuns(self._database)
        self.transcripts = Transcripts(self._database)

    def create(self) -> None:
        """Make the tables where they are missing."""
        self._database.create()

    def close(self) -> None:
        """Give back every connection."""
        self._database.close()
