"""The ledger: the SQL database that owns the state of every document."""

from stores.ledger.batches import Batches
from stores.ledger.chunks import Chunks
from stores.ledger.collections import Collections
from stores.ledger.conversations import ConversationRecord, Conversations
from stores.ledger.database import Database
from stores.ledger.documents import Documents
from stores.ledger.events import Event, EventKind, Events
from stores.ledger.facet_values import FacetBuild, FacetValue, FacetValues
from stores.ledger.failures import DeadLetter, Failures, Which
from stores.ledger.family import Family
from stores.ledger.inventory import Inventory, Item
from stores.ledger.judged import JudgedSearch, JudgedSearches
from stores.ledger.lease_keeper import LeaseKeeper
from stores.ledger.leases import Leases
from stores.ledger.memory import Memory, MemoryPlace, MemorySums
from stores.ledger.model_usage import ModelUsage, Reservation, UsageRow
from stores.ledger.moves import Move, Moves
from stores.ledger.outcomes import OutcomeRecord, Outcomes
from stores.ledger.receipts import Receipt, Receipts
from stores.ledger.records import (
    ATTACHED,
    STEPS,
    Accepted,
    Attachment,
    BatchItem,
    BatchReport,
    Claim,
    CollectionRecord,
    DocumentRecord,
    DocumentState,
    Failure,
    Nudge,
    Refusal,
    Step,
    StepRecord,
    Submission,
    VersionRecord,
)
from stores.ledger.searches import QueryProfile, RetrievalEvent, Searches, TraceRecord
from stores.ledger.source_runs import ItemRecord, Run, SourceRuns
from stores.ledger.sources import Outcome, SourceRecord, Sources
from stores.ledger.sweep import Sweep
from stores.ledger.tenants import Tenants
from stores.ledger.token_vectors import TokenVectors
from stores.ledger.transcripts import ChunkRow, Snapshot, Transcript, Transcripts
from stores.ledger.turns import Turns, lane_of
from stores.ledger.vectors import Vectors
from stores.ledger.versions import PRIORITIES, PastVersion, Versions
from stores.ledger.webhooks import Delivery, DeliveryState, Webhook, Webhooks

__all__ = [
    "ATTACHED",
    "PRIORITIES",
    "STEPS",
    "Accepted",
    "Attachment",
    "BatchItem",
    "BatchReport",
    "ChunkRow",
    "Claim",
    "CollectionRecord",
    "ConversationRecord",
    "DeadLetter",
    "Delivery",
    "DeliveryState",
    "DocumentRecord",
    "DocumentState",
    "Event",
    "EventKind",
    "FacetBuild",
    "FacetValue",
    "Failure",
    "Item",
    "ItemRecord",
    "JudgedSearch",
    "LeaseKeeper",
    "Ledger",
    "MemoryPlace",
    "MemorySums",
    "ModelUsage",
    "Move",
    "Moves",
    "Nudge",
    "Outcome",
    "OutcomeRecord",
    "PastVersion",
    "QueryProfile",
    "Receipt",
    "Refusal",
    "Reservation",
    "RetrievalEvent",
    "Run",
    "Snapshot",
    "SourceRecord",
    "Step",
    "StepRecord",
    "Submission",
    "TraceRecord",
    "Transcript",
    "UsageRow",
    "VersionRecord",
    "Webhook",
    "Which",
    "lane_of",
]


class Ledger:
    """All of it over one database. One per process, made after the fork."""

    def __init__(self, url: str) -> None:
        self._database = Database(url)
        self.collections = Collections(self._database)
        self.tenants = Tenants(self._database)
        self.documents = Documents(self._database)
        self.family = Family(self._database)
        self.versions = Versions(self._database)
        self.turns = Turns(self._database)
        self.leases = Leases(self._database)
        self.failures = Failures(self._database)
        self.chunks = Chunks(self._database)
        self.vectors = Vectors(self._database)
        self.token_vectors = TokenVectors(self._database)
        self.sweep = Sweep(self._database)
        self.inventory = Inventory(self._database)
        self.receipts = Receipts(self._database)
        self.moves = Moves(self._database)
        self.events = Events(self._database)
        self.batches = Batches(self._database)
        self.webhooks = Webhooks(self._database)
        self.sources = Sources(self._database)
        self.source_runs = SourceRuns(self._database)
        self.facet_values = FacetValues(self._database)
        self.transcripts = Transcripts(self._database)
        self.memory = Memory(self._database)
        self.searches = Searches(self._database)
        self.outcomes = Outcomes(self._database)
        self.judged = JudgedSearches(self._database)
        self.conversations = Conversations(self._database)
        self.model_usage = ModelUsage(self._database)

    def create(self) -> None:
        """Make the tables where they are missing."""
        self._database.create()

    def close(self) -> None:
        """Give back every connection."""
        self._database.close()
