"""The ledger: the SQL database that owns the state of every document."""

from contextlib import AbstractContextManager

from callslip.readers import Reader
from callslip.stores.ledger.access.audit_log import AuditEntry, AuditLog, AuditRow, Verified
from callslip.stores.ledger.access.keys import ApiKey, ApiKeys, KeyGrant, KeyLimits
from callslip.stores.ledger.access.secrets import Secrets
from callslip.stores.ledger.access.usage import KeyUsage, Used
from callslip.stores.ledger.answers.conversations import ConversationRecord, Conversations
from callslip.stores.ledger.answers.model_usage import ModelUsage, Reservation, UsageRow
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.fair_queue import FairQueue, Pace, Work, tenant_queue_of
from callslip.stores.ledger.base.lease_keeper import Lease, LeaseKeeper
from callslip.stores.ledger.base.records import (
    ATTACHED,
    ATTACHED_CHROMA,
    ATTACHED_KINDS,
    STEPS,
    Accepted,
    Attachment,
    BatchItem,
    BatchReport,
    Claim,
    CollectionRecord,
    Dispatch,
    DocumentRecord,
    DocumentState,
    Edit,
    Failure,
    Refusal,
    Step,
    StepRecord,
    Submission,
    VersionRecord,
)
from callslip.stores.ledger.caches.token_vectors import TokenVectors
from callslip.stores.ledger.caches.vectors import Vectors
from callslip.stores.ledger.collections.collections import Collections
from callslip.stores.ledger.collections.moves import Move, Moves, Rebuilt
from callslip.stores.ledger.collections.receipts import Receipt, Receipts
from callslip.stores.ledger.collections.tenants import Tenants
from callslip.stores.ledger.documents.attachments import ChildDocuments
from callslip.stores.ledger.documents.batches import Batches
from callslip.stores.ledger.documents.chunk_rows import ChunkRows
from callslip.stores.ledger.documents.chunks import Chunks
from callslip.stores.ledger.documents.corrections import CorrectedVersions
from callslip.stores.ledger.documents.documents import Documents
from callslip.stores.ledger.documents.edits import Edited, Edits
from callslip.stores.ledger.documents.failures import DeadLetter, Failures, Which
from callslip.stores.ledger.documents.inventory import Inventory, Item
from callslip.stores.ledger.documents.leases import Leases, Live
from callslip.stores.ledger.documents.pages import NO_PAGES, PageRange, Pages, PageTable
from callslip.stores.ledger.documents.progress import Finished
from callslip.stores.ledger.documents.readers import DocumentReaders, Unreadable
from callslip.stores.ledger.documents.sweep import Sweep
from callslip.stores.ledger.documents.unchanged import UnchangedDocuments
from callslip.stores.ledger.documents.versions import PastVersion, Provenance, Versions
from callslip.stores.ledger.learning.facet_values import FacetBuild, FacetValue, FacetValues
from callslip.stores.ledger.learning.judged import JudgedSearch, JudgedSearches
from callslip.stores.ledger.learning.memory import Memory, MemoryScope, MemorySums
from callslip.stores.ledger.learning.outcomes import OutcomeRecord, Outcomes
from callslip.stores.ledger.learning.proposals import Proposal, Proposals, ProposedRun
from callslip.stores.ledger.learning.searches import (
    QueryProfile,
    RetrievalEvent,
    Searches,
    TraceRecord,
)
from callslip.stores.ledger.migrations.history import LEDGER, upgrade
from callslip.stores.ledger.outbox.events import Event, EventKind, Events
from callslip.stores.ledger.outbox.webhooks import Delivery, DeliveryState, Webhook, Webhooks
from callslip.stores.ledger.purge import Purge
from callslip.stores.ledger.sources.runs import ItemRecord, Run, SourceRuns
from callslip.stores.ledger.sources.sources import Outcome, SourceRecord, Sources
from callslip.stores.ledger.tables import Tables
from callslip.stores.ledger.transcripts.transcripts import Transcripts
from callslip.stores.ledger.transcripts.values import ChunkRow, Snapshot, Transcript
from callslip.vocabulary import PRIORITIES

__all__ = [
    "ATTACHED",
    "ATTACHED_CHROMA",
    "ATTACHED_KINDS",
    "NO_PAGES",
    "PRIORITIES",
    "STEPS",
    "Accepted",
    "ApiKey",
    "Attachment",
    "AuditEntry",
    "AuditRow",
    "BatchItem",
    "BatchReport",
    "ChunkRow",
    "Claim",
    "CollectionRecord",
    "ConversationRecord",
    "DeadLetter",
    "Delivery",
    "DeliveryState",
    "Dispatch",
    "DocumentRecord",
    "DocumentState",
    "Edit",
    "Edited",
    "Event",
    "EventKind",
    "FacetBuild",
    "FacetValue",
    "Failure",
    "FairQueue",
    "Finished",
    "Item",
    "ItemRecord",
    "JudgedSearch",
    "KeyGrant",
    "KeyLimits",
    "Lease",
    "LeaseKeeper",
    "Ledger",
    "Live",
    "MemoryScope",
    "MemorySums",
    "ModelUsage",
    "Move",
    "Moves",
    "Outcome",
    "OutcomeRecord",
    "Pace",
    "PageRange",
    "PageTable",
    "PastVersion",
    "Proposal",
    "ProposedRun",
    "Provenance",
    "QueryProfile",
    "Rebuilt",
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
    "Unreadable",
    "UsageRow",
    "Used",
    "Verified",
    "VersionRecord",
    "Webhook",
    "Which",
    "Work",
    "tenant_queue_of",
]


class Ledger:
    """The tables of the ledger in one database. Create one per process, after the fork."""

    def __init__(self, url: str) -> None:
        self._make(Database(url), None)

    def for_reader(self, reader: Reader | None) -> "Ledger":
        """This ledger as far as a reader may read it, over the same connections.

        What the reader may not read is missing. Work on the queue, such as leases, is not limited.
        """
        if reader is None:
            return self
        limited = Ledger.__new__(Ledger)
        limited._make(self._database, reader)
        return limited

    def _make(self, database: Database, reader: Reader | None) -> None:
        self._database, self.reader = database, reader
        self.collections = Collections(self._database, reader)
        self.tenants = Tenants(self._database)
        self.documents = Documents(self._database, reader)
        self.unchanged = UnchangedDocuments(self._database, reader)
        self.readers = DocumentReaders(self._database, reader)
        self.child_documents = ChildDocuments(self._database)
        self.versions = Versions(self._database, reader)
        self.edits = Edits(self._database, reader)
        self.fair_queue = FairQueue(self._database)
        self.leases = Leases(self._database)
        self.failures = Failures(self._database, reader)
        self.chunks = Chunks(self._database, reader)
        self.pages = Pages(self._database, reader)
        self.corrections = CorrectedVersions(self._database, reader)
        self.chunk_rows = ChunkRows(self._database, reader)
        self.vectors = Vectors(self._database)
        self.token_vectors = TokenVectors(self._database)
        self.sweep = Sweep(self._database)
        self.inventory = Inventory(self._database)
        self.receipts = Receipts(self._database)
        self.moves = Moves(self._database)
        self.events = Events(self._database, reader)
        self.batches = Batches(self._database, reader)
        self.webhooks = Webhooks(self._database)
        self.sources = Sources(self._database)
        self.source_runs = SourceRuns(self._database)
        self.facet_values = FacetValues(self._database)
        self.transcripts = Transcripts(self._database)
        self.memory = Memory(self._database, reader)
        self.searches = Searches(self._database, reader)
        self.outcomes = Outcomes(self._database, reader)
        self.judged = JudgedSearches(self._database, reader)
        self.proposals = Proposals(self._database)
        self.conversations = Conversations(self._database, reader)
        self.model_usage = ModelUsage(self._database)
        self.api_keys = ApiKeys(self._database)
        self.key_usage = KeyUsage(self._database)
        self.audit_log = AuditLog(self._database)
        self.secrets = Secrets(self._database)
        self.tables = Tables(self._database)
        self.purge = Purge(self._database)

    def create(self) -> None:
        """Create the tables, or migrate those of an older Callslip to the newest revision.

        Raises LedgerError or SettingsError if this Callslip cannot work with the database.
        """
        upgrade(self._database, LEDGER)

    def one_reader(self) -> AbstractContextManager[None]:
        """Let all reads of this thread within the block use one connection."""
        return self._database.one_reader()

    def close(self) -> None:
        """Close all connections of the pool."""
        self._database.close()
