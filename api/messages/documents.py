"""Requests and responses of the API, except those of searches (retrieval/messages.py)."""

from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from callslip.config.settings import StoreKind
from callslip.messages import collections as messages
from callslip.messages.batches import Batch as Batch
from callslip.messages.batches import BatchDocument as BatchDocument
from callslip.messages.batches import BatchDocuments as BatchDocuments
from callslip.messages.collections import AttachedTable as AttachedTable
from callslip.messages.collections import Collection as Collection
from callslip.messages.collections import CollectionDeleted as CollectionDeleted
from callslip.messages.collections import Collections as Collections
from callslip.messages.collections import NamedVector as NamedVector
from callslip.messages.collections import Receipt as Receipt
from callslip.messages.collections import Receipts as Receipts
from callslip.messages.collections import Tenants as Tenants
from callslip.messages.documents import CutPreview as CutPreview
from callslip.messages.documents import Deleted as Deleted
from callslip.messages.documents import Document as Document
from callslip.messages.documents import Documents as Documents
from callslip.messages.documents import Event as Event
from callslip.messages.documents import StepMessage as StepMessage
from callslip.messages.documents import StreamEnd as StreamEnd
from callslip.messages.documents import Submitted as Submitted
from callslip.messages.documents import Task as Task
from callslip.messages.documents import TextSlice as TextSlice
from callslip.messages.documents import Unchanged as Unchanged
from callslip.messages.documents import VersionMessage as VersionMessage
from callslip.messages.documents import Versions as Versions
from callslip.messages.failures import DeadLetter as DeadLetter
from callslip.messages.failures import DeadLetters as DeadLetters
from callslip.messages.failures import Retried as Retried
from callslip.messages.health import Health as Health
from callslip.messages.health import Part as Part
from callslip.messages.health import Readiness as Readiness
from callslip.messages.options import Options
from callslip.messages.problems import FailureMessage as FailureMessage
from callslip.messages.problems import Problem as Problem
from callslip.messages.values import OptionalWhole, Whole
from callslip.messages.webhooks import Deliveries as Deliveries
from callslip.messages.webhooks import Delivery as Delivery
from callslip.messages.webhooks import Webhook as Webhook
from callslip.messages.webhooks import WebhookMade as WebhookMade
from callslip.messages.webhooks import Webhooks as Webhooks
from callslip.readers import MOST_READERS
from callslip.retrieval.messages import Text
from callslip.stores import naming
from callslip.stores.ledger import PRIORITIES, EventKind
from callslip.stores.ledger.base.records import Vectors
from callslip.stores.metrics import Metric
from callslip.stores.schemas import MAX_NAMED, NAME
from callslip.vocabulary import MOST_COMPARED
from callslip.vocabulary import ItemState as ItemState

PRIORITY: Any = Field(
    0,
    ge=PRIORITIES[0],
    le=PRIORITIES[1],
    description="of the waiting documents of a tenant, those with the highest priority go first",
)

URL: Any = Field(
    None,
    max_length=2 * naming.LONGEST_URL,
    description="the web address of the document's source, http or https; hits and citations have"
    " it as `source_url`",
)
LANGUAGE_CODE: Any = Field(
    None,
    max_length=8,
    description="`lang` of every passage, as an ISO 639 code; default: recognised",
)


class Request(BaseModel):
    """A request; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """Return the JSON schema; without options, as each request reads it, it is made once."""
        if args or options:
            return super().model_json_schema(*args, **options)
        return _usual_schema(cls)


@cache
def _usual_schema(model: type[Request]) -> dict[str, Any]:
    return super(Request, model).model_json_schema()


class NewVector(Request):
    """A further vector of every chunk of a new collection."""

    embedder: str = Field(
        max_length=256, description="name of the embedder in the settings, under `embedders`"
    )
    metric: Metric = Field("cosine", description="the distance of its index")


class NewCollection(Request):
    """A collection to make."""

    name: str = Field(pattern=NAME, description="letters, digits, `.`, `_`, `-`; at most 64")
    store: StoreKind | None = Field(None, description="its store; default from the settings")
    metric: Metric = Field("cosine", description="the distance of its vector index")
    tenants: bool = Field(False, description="whether every document and search names a tenant")
    vectors: dict[str, NewVector] | None = Field(
        None,
        max_length=MAX_NAMED,
        description="vectors of every chunk beside the default one, by the name that searches give"
        " as `vector_name`",
        examples=[{"meaning": {"embedder": "bge"}}],
    )
    options: Options | None = Field(
        None, description="the enrichment of its documents; default: docs/enrichment.md"
    )


class ChromaCollection(Request):
    """A collection in a Chroma server of another program."""

    url: str = Field(
        min_length=1, max_length=512, description="its server, such as http://127.0.0.1:8000"
    )
    collection: str = Field(min_length=1, max_length=256, description="its name there")
    tenant: str = Field("default_tenant", min_length=1, max_length=256)
    database: str = Field("default_database", min_length=1, max_length=256)


class NewAttachment(Request):
    """A table of CrateDB, or a collection of Chroma, to attach."""

    name: str = Field(pattern=NAME, description="the name of the collection")
    chroma: ChromaCollection | None = Field(None, description="instead of `table`")
    table: str | None = Field(
        None,
        min_length=1,
        max_length=600,
        description='`TABLE` or `SCHEMA.TABLE`, as in SQL: quotes (`"My table"`) keep its case',
    )
    vectors: Vectors = Field(
        "none",
        description="`ours`: this installation's embedder made the vectors (of a table, in column"
        " xs), so the server can embed queries; `previous`: its previous embedder made them;"
        " `none`: search by words, which Chroma cannot, or by a vector in the request",
    )


class Tenant(messages.Tenant):
    """A tenant of a collection."""

    model_config = ConfigDict(extra="forbid")

    tenant: naming.Tenant = Field(
        min_length=1, max_length=naming.LONGEST_TENANT, description="any name"
    )


class NewDocument(Request):
    """A document sent as text."""

    text: str = Field(description="the whole text; it may have Markdown headings")
    name: str | None = Field(
        None,
        max_length=1024,
        description="identity in the collection; a known name makes a new version",
    )
    tenant: naming.Tenant = Field(
        "",
        max_length=naming.LONGEST_TENANT,
        description="the document's tenant, in a collection with tenants",
    )
    title: str | None = Field(None, max_length=1024)
    url: str | None = URL
    language: str | None = LANGUAGE_CODE
    properties: dict[str, Any] | None = Field(
        None,
        description="strings, numbers, booleans or lists, for filters; by default, the same"
        " content keeps its current properties",
    )
    allow_duplicate: bool = Field(
        False, description="store the text even if another document has the same text"
    )
    priority: int = PRIORITY
    batch: str = Field(
        "", pattern=f"^$|{NAME}", description="the document's batch; a new name makes a batch"
    )
    readers: list[str] | None = Field(
        None,
        max_length=MOST_READERS,
        description='who may read the document: `user:NAME`, `group:NAME`, or `["everyone"]`;'
        " default: as before, and of a new document everyone",
    )


class Change(Request):
    """Changes a document (RFC 7396): a field left out stays, null removes a value."""

    title: str | None = Field(
        None, max_length=1024, description="null: the title that the file itself has"
    )
    url: str | None = URL
    language: str | None = Field(
        None,
        max_length=8,
        description="`lang` of every passage, as an ISO 639 code; null: as recognised",
    )
    valid_from: str | None = Field(
        None,
        max_length=64,
        description="the first day on which the whole document is in force, whatever single"
        " passages state; null: as recognised",
    )
    valid_to: str | None = Field(
        None, max_length=64, description="the first day on which it is no longer in force"
    )
    properties: dict[str, Any] | None = Field(
        None,
        description="merged into the present ones; a value of null removes one property, null in"
        " place of the object all of them",
    )
    readers: list[str] | None = Field(
        None,
        max_length=MOST_READERS,
        description="who may read the document and those within it: `user:NAME`, `group:NAME`;"
        " null: everyone. It applies at once, to every version",
    )


class UploadForm(BaseModel):
    """A document sent as a file (multipart/form-data)."""

    file: str = Field(json_schema_extra={"format": "binary"})
    name: str | None = Field(
        None, description="identity in the collection; default the file's name"
    )
    tenant: str = Field("", description="the document's tenant, in a collection with tenants")
    title: str | None = None
    url: str | None = URL
    language: str | None = LANGUAGE_CODE
    properties: str | None = Field(
        None, description="a JSON object; by default, the same content keeps its properties"
    )
    allow_duplicate: bool = False
    priority: int = PRIORITY
    batch: str = Field("", description="the document's batch; a new name makes a batch")
    readers: str | None = Field(
        None, description="as in JSON, or with commas: `user:ann,group:hr`, or `everyone`"
    )


class ComparedDocument(Request):
    """What a submission of a file would have, with the content's hash instead of the content."""

    name: str = Field(max_length=naming.LONGEST_NAME, description="identity in the collection")
    filename: str = Field(
        max_length=naming.LONGEST_NAME,
        description="the file's name, without folders; of a text sent as JSON its `name`, with"
        " `.txt` if it does not end in `.txt`, `.md` or `.markdown`",
    )
    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="of the content")
    title: str | None = Field(None, max_length=naming.LONGEST_NAME)
    url: str | None = URL
    language: str | None = LANGUAGE_CODE
    properties: dict[str, Any] | None = None


class ComparedDocuments(Request):
    """Files to compare with the documents of the same names."""

    tenant: naming.Tenant = Field("", max_length=naming.LONGEST_TENANT, description="whose")
    documents: list[ComparedDocument] = Field(max_length=MOST_COMPARED)


class CutRequest(Request):
    """The lengths of a document's chunks, in tokens of the embedder; null: as they are."""

    max_tokens: OptionalWhole = Field(None, ge=32, le=100_000, description="the longest chunk")
    overlap_tokens: OptionalWhole = Field(
        None, ge=0, le=10_000, description="text that a chunk shares with the previous chunk"
    )


class CutLimits(CutRequest):
    """The same, with the number of chunks to return."""

    limit: int = Field(100, ge=0, le=1000, description="chunks in the response, from the first")


class Rollback(Request):
    """Restores an older version."""

    version: int = Field(ge=1, le=10**9, description="the version to restore")


class Which(Request):
    """Selects dead letters that match every field of the request."""

    collection: Text | None = None
    tenant: Text | None = None
    reason: Text | None = Field(None, description="the `type` of the error, such as `worker-lost`")
    older_than: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="failed at least so many seconds ago"
    )
    newer_than: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="failed at most so many seconds ago"
    )


class DeadLettersQuery(Which):
    """A page of dead letters."""

    limit: Whole = Field(50, ge=1, le=500)
    after: str | None = Field(None, description="`next_after` of the previous page")


class Retry(Which):
    """Selects dead letters to retry."""

    document_ids: list[Text] | None = Field(None, max_length=500)
    all: bool = Field(False, description="required if the request has no other field")


class NewBatch(Request):
    """A batch: documents that a client sends together."""

    batch_id: str | None = Field(None, pattern=NAME, description="any name; default a new one")
    expected: int | None = Field(
        None, ge=0, lt=2**31, description="its final number of documents, to estimate the time left"
    )


class NewWebhook(Request):
    """A subscription of a URL to events."""

    url: str = Field(max_length=2048, description="the server sends events to it by POST")
    collection: Text | None = Field(
        None, description="only events of this collection; default: all"
    )
    events: list[EventKind] = Field(
        ["document.live", "document.failed", "document.deleted"], min_length=1, max_length=100
    )
    secret: str | None = Field(
        None, max_length=128, description="`whsec_` and 24 to 64 bytes in base64; default a new one"
    )
