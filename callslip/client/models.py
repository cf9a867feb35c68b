"""The models of responses, each imported at its first use: a command needs two or three."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callslip.messages.answers import Answer as Answer
    from callslip.messages.answers import AnswerSentence as AnswerSentence
    from callslip.messages.answers import Attempt as Attempt
    from callslip.messages.answers import Citation as Citation
    from callslip.messages.answers import Conversation as Conversation
    from callslip.messages.answers import NodeMessage as NodeMessage
    from callslip.messages.answers import RecordedAnswer as RecordedAnswer
    from callslip.messages.answers import RecordedCitation as RecordedCitation
    from callslip.messages.answers import RecordedSentence as RecordedSentence
    from callslip.messages.answers import SentenceMessage as SentenceMessage
    from callslip.messages.answers import Source as Source
    from callslip.messages.answers import TurnMessage as TurnMessage
    from callslip.messages.answers import Usage as Usage
    from callslip.messages.answers import Verdict as Verdict
    from callslip.messages.base import Message as Message
    from callslip.messages.batches import Batch as Batch
    from callslip.messages.batches import BatchDocument as BatchDocument
    from callslip.messages.batches import BatchDocuments as BatchDocuments
    from callslip.messages.chunks import Chunk as Chunk
    from callslip.messages.chunks import Chunks as Chunks
    from callslip.messages.chunks import ChunksPreview as ChunksPreview
    from callslip.messages.chunks import Correction as Correction
    from callslip.messages.chunks import Corrections as Corrections
    from callslip.messages.chunks import PreviewedChunk as PreviewedChunk
    from callslip.messages.collections import AttachedTable as AttachedTable
    from callslip.messages.collections import Collection as Collection
    from callslip.messages.collections import CollectionDeleted as CollectionDeleted
    from callslip.messages.collections import Collections as Collections
    from callslip.messages.collections import NamedVector as NamedVector
    from callslip.messages.collections import Receipt as Receipt
    from callslip.messages.collections import Receipts as Receipts
    from callslip.messages.collections import Tenant as Tenant
    from callslip.messages.collections import Tenants as Tenants
    from callslip.messages.documents import CutChunk as CutChunk
    from callslip.messages.documents import CutCounts as CutCounts
    from callslip.messages.documents import CutPreview as CutPreview
    from callslip.messages.documents import Deleted as Deleted
    from callslip.messages.documents import Document as Document
    from callslip.messages.documents import Documents as Documents
    from callslip.messages.documents import Event as Event
    from callslip.messages.documents import StepMessage as StepMessage
    from callslip.messages.documents import Submitted as Submitted
    from callslip.messages.documents import Task as Task
    from callslip.messages.documents import TextSlice as TextSlice
    from callslip.messages.documents import Unchanged as Unchanged
    from callslip.messages.documents import VersionMessage as VersionMessage
    from callslip.messages.documents import Versions as Versions
    from callslip.messages.facets import Facet as Facet
    from callslip.messages.facets import FacetProposals as FacetProposals
    from callslip.messages.facets import Facets as Facets
    from callslip.messages.facets import FacetsAsked as FacetsAsked
    from callslip.messages.facets import FacetValue as FacetValue
    from callslip.messages.facets import PropertyCounts as PropertyCounts
    from callslip.messages.facets import ProposedCluster as ProposedCluster
    from callslip.messages.facets import ProposedProperty as ProposedProperty
    from callslip.messages.facets import ValueCount as ValueCount
    from callslip.messages.failures import DeadLetter as DeadLetter
    from callslip.messages.failures import DeadLetters as DeadLetters
    from callslip.messages.failures import Retried as Retried
    from callslip.messages.health import Health as Health
    from callslip.messages.health import Part as Part
    from callslip.messages.health import Readiness as Readiness
    from callslip.messages.memory import ChunkMemory as ChunkMemory
    from callslip.messages.memory import Feedback as Feedback
    from callslip.messages.memory import Forgotten as Forgotten
    from callslip.messages.memory import MemoryLine as MemoryLine
    from callslip.messages.memory import MemoryMessage as MemoryMessage
    from callslip.messages.memory import TakenIn as TakenIn
    from callslip.messages.memory import TraceMessage as TraceMessage
    from callslip.messages.options import JsonFields as JsonFields
    from callslip.messages.options import Options as Options
    from callslip.messages.options import Ranking as Ranking
    from callslip.messages.options import Rule as Rule
    from callslip.messages.problems import FailureMessage as FailureMessage
    from callslip.messages.ranking import JudgedSearchLine as JudgedSearchLine
    from callslip.messages.ranking import ProposalMessage as ProposalMessage
    from callslip.messages.ranking import ProposalsMessage as ProposalsMessage
    from callslip.messages.ranking import RankingMessage as RankingMessage
    from callslip.messages.search import Area as Area
    from callslip.messages.search import Hit as Hit
    from callslip.messages.search import Leg as Leg
    from callslip.messages.search import Legs as Legs
    from callslip.messages.search import Matched as Matched
    from callslip.messages.search import Pages as Pages
    from callslip.messages.search import Reasons as Reasons
    from callslip.messages.search import SearchResponse as SearchResponse
    from callslip.messages.search import Span as Span
    from callslip.messages.search import TimeClamp as TimeClamp
    from callslip.messages.usage import Today as Today
    from callslip.messages.usage import UsageMessage as UsageMessage
    from callslip.messages.usage import Used as Used
    from callslip.messages.usage import UsedOnDay as UsedOnDay
    from callslip.messages.webhooks import Deliveries as Deliveries
    from callslip.messages.webhooks import Delivery as Delivery
    from callslip.messages.webhooks import Webhook as Webhook
    from callslip.messages.webhooks import WebhookMade as WebhookMade
    from callslip.messages.webhooks import Webhooks as Webhooks

MODULES = {
    "answers": (
        "Answer",
        "AnswerSentence",
        "Attempt",
        "Citation",
        "Conversation",
        "NodeMessage",
        "RecordedAnswer",
        "RecordedCitation",
        "RecordedSentence",
        "SentenceMessage",
        "Source",
        "TurnMessage",
        "Usage",
        "Verdict",
    ),
    "base": ("Message",),
    "batches": ("Batch", "BatchDocument", "BatchDocuments"),
    "chunks": (
        *("Chunk", "Chunks", "ChunksPreview", "Correction", "Corrections"),
        "PreviewedChunk",
    ),
    "collections": (
        "AttachedTable",
        "Collection",
        "CollectionDeleted",
        "Collections",
        "NamedVector",
        "Receipt",
        "Receipts",
        "Tenant",
        "Tenants",
    ),
    "documents": (
        "CutChunk",
        "CutCounts",
        "CutPreview",
        "Deleted",
        "Document",
        "Documents",
        "Event",
        "StepMessage",
        "Submitted",
        "Task",
        "TextSlice",
        "Unchanged",
        "VersionMessage",
        "Versions",
    ),
    "facets": (
        "Facet",
        "FacetProposals",
        "FacetValue",
        "Facets",
        "FacetsAsked",
        "PropertyCounts",
        "ProposedCluster",
        "ProposedProperty",
        "ValueCount",
    ),
    "failures": ("DeadLetter", "DeadLetters", "Retried"),
    "health": ("Health", "Part", "Readiness"),
    "memory": (
        "ChunkMemory",
        "Feedback",
        "Forgotten",
        "MemoryLine",
        "MemoryMessage",
        "TakenIn",
        "TraceMessage",
    ),
    "options": ("JsonFields", "Options", "Ranking", "Rule"),
    "problems": ("FailureMessage",),
    "ranking": ("JudgedSearchLine", "ProposalMessage", "ProposalsMessage", "RankingMessage"),
    "search": (
        *("Area", "Hit", "Leg", "Legs", "Matched", "Pages", "Reasons", "SearchResponse", "Span"),
        "TimeClamp",
    ),
    "usage": ("Today", "UsageMessage", "Used", "UsedOnDay"),
    "webhooks": ("Deliveries", "Delivery", "Webhook", "WebhookMade", "Webhooks"),
}
"""The modules of `callslip.messages`, and the models of each that a client uses."""

_MODULE_OF = {name: module for module, names in MODULES.items() for name in names}


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import the module of a model, once."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        model = getattr(import_module(f"callslip.messages.{_MODULE_OF[name]}"), name)
        globals()[name] = model
        return model
