"""What the desk takes and gives, beside searches (retrieval/messages.py)."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from config.settings import StoreKind
from stores import naming
from stores.ledger import PRIORITIES, DeliveryState, EventKind, Step
from stores.ledger.records import Vectors
from stores.metrics import Metric
from stores.options import Options
from stores.schemas import NAME

PRIORITY: Any = Field(
    0,
    ge=PRIORITIES[0],
    le=PRIORITIES[1],
    description="of the documents of one tenant that wait, a higher one goes first",
)


class Request(BaseModel):
    """An unknown key is an error."""

    model_config = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """An error (RFC 9457), with what to do in `advice`."""

    type: str = Field(examples=["urn:callslip:problem:collection-not-found"])
    title: str
    status: int
    detail: str
    advice: str
    errors: list[dict[str, str]] = Field(
        default=[], description="field and message, one per wrong value"
    )


class NewCollection(Request):
    """A collection to make."""

    name: str = Field(pattern=NAME, description="letters, digits, `.`, `_`, `-`; at most 64")
    store: StoreKind | None = Field(None, description="where it is kept; default from the settings")
    metric: Metric = Field("cosine", description="what its vectors are indexed by")
    tenants: bool = Field(False, description="whether every document and search names a tenant")
    options: Options | None = Field(
        None, description="what is found out about its documents; default: docs/enrichment.md"
    )


class AttachedTable(BaseModel):
    """The table of somebody else that a collection is."""

    table: str
    vectors: Vectors = Field(
        description="`ours`: of this installation's embedder; `none`: of one that is not known"
    )


class NewAttachment(Request):
    """A table to attach."""

    name: str = Field(pattern=NAME, description="of the collection that the table is to be")
    table: str = Field(
        min_length=1,
        max_length=600,
        description='`TABLE` or `SCHEMA.TABLE`, as SQL writes it: `"My table"` keeps its letters',
    )
    vectors: Vectors = Field(
        "none",
        description="`ours`: column xs was made by this installation's embedder, so that questions"
        " can be embedded; `none`: only words are searched, and vectors that a request gives",
    )


class Collection(BaseModel):
    """Documents that are searched together."""

    name: str
    store: str
    embedder: str
    dimension: int
    metric: Metric
    vector_names: list[str] = Field(description="of further vectors beside the default one")
    tenants: bool
    analyzer: str
    options: Options
    created_at: float
    documents: int = Field(
        description="how many are live; rows of an attached table are not counted"
    )
    attached: AttachedTable | None = Field(
        None, description="where it is a table that is only read (docs/cratedb-hybrid-search.md)"
    )


class Collections(BaseModel):
    """Every collection, by name."""

    collections: list[Collection]


class Tenant(Request):
    """A tenant of a collection."""

    tenant: naming.Tenant = Field(
        min_length=1, max_length=naming.LONGEST_TENANT, description="any name"
    )


class Tenants(BaseModel):
    """Every tenant of a collection, by name."""

    tenants: list[str]


class CollectionDeleted(BaseModel):
    """A collection that is hidden already and removed soon."""

    collection: str


class Receipt(BaseModel):
    """What was held of a deleted collection, or a tenant of it, and what is left."""

    collection: str
    tenant: str = Field(description="empty: the whole collection")
    deleted_at: float
    removed_at: float | None = Field(description="null while the removal is under way")
    before: dict[str, int] = Field(description="objects in each half of each store, and files")
    after: dict[str, int] | None = Field(description="the same, counted again when all was removed")


class Receipts(BaseModel):
    """Of every deletion under a collection's name, newest first."""

    receipts: list[Receipt]


class NewDocument(Request):
    """A document sent as text."""

    text: str = Field(description="the whole text; Markdown headings are understood")
    name: str | None = Field(
        None,
        max_length=1024,
        description="identity in the collection; the same name again replaces",
    )
    tenant: naming.Tenant = Field(
        "",
        max_length=naming.LONGEST_TENANT,
        description="whose document; of a collection with tenants",
    )
    title: str | None = Field(None, max_length=1024)
    properties: dict[str, Any] | None = Field(
        None,
        description="what filters see: strings, numbers, booleans, lists; left out, the same"
        " content again keeps those it has",
    )
    allow_duplicate: bool = Field(
        False, description="store it even where another name holds the same text"
    )
    priority: int = PRIORITY
    batch: str = Field(
        "", pattern=f"^$|{NAME}", description="what it is sent together with; made where it is not"
    )


class UploadForm(BaseModel):
    """A document sent as a file (multipart/form-data)."""

    file: str = Field(json_schema_extra={"format": "binary"})
    name: str | None = Field(
        None, description="identity in the collection; default the file's name"
    )
    tenant: str = Field("", description="whose document; of a collection with tenants")
    title: str | None = None
    properties: str | None = Field(
        None, description="a JSON object; left out, the same content again keeps those it has"
    )
    allow_duplicate: bool = False
    priority: int = PRIORITY
    batch: str = Field("", description="what it is sent together with; made where it is not")


class Submitted(BaseModel):
    """What became of a submission."""

    outcome: Literal["accepted", "unchanged"]
    document_id: str
    version: int
    task_id: str
    status_url: str
    task_url: str


class FailureMessage(BaseModel):
    """Why something failed and what to do."""

    type: str
    title: str
    detail: str
    advice: str
    step: str | None = None


class StepMessage(BaseModel):
    """How far one step is."""

    step: str
    state: Literal["pending", "running", "done", "failed"]
    attempts: int
    crashes: int
    seconds: float | None
    worker: str | None
    counts: dict[str, int]
    retry_in_seconds: float | None
    error: FailureMessage | None


class Document(BaseModel):
    """A document with its newest version and that version's steps."""

    document_id: str
    collection: str
    tenant: str
    name: str
    parent: str | None = Field(description="id of the document that it came within, such as a mail")
    title: str
    filename: str
    size: int
    sha256: str
    version: int
    live_version: int | None = Field(
        description="what searches see; null where nothing is live yet"
    )
    state: Literal["waiting", "working", "stalled", "live", "failed", "deleted"] = Field(
        description="waiting: for a free worker; stalled: nobody has it until the next sweep"
    )
    created_at: float
    submitted_at: float
    finished_at: float | None
    properties: dict[str, Any]
    steps: list[StepMessage]
    error: FailureMessage | None
    receipt: dict[str, dict[str, int]] | None = Field(
        description="after a deletion: objects in each store before and after"
    )


class VersionMessage(BaseModel):
    """One content that a document has, or had."""

    version: int
    state: Literal["queued", "live", "superseded", "failed"] = Field(
        description="live: what searches see"
    )
    submitted_at: float
    finished_at: float | None
    sha256: str
    size: int
    filename: str
    title: str
    properties: dict[str, Any]
    counts: dict[str, dict[str, int]] = Field(description="what each step made, by step")
    superseded_by: int | None = Field(description="the version that took its place")
    restores: int | None = Field(description="of a rollback: the version that it brought back")
    error: FailureMessage | None


class Versions(BaseModel):
    """The history of a document, newest version first."""

    document_id: str
    name: str
    live_version: int | None
    versions: list[VersionMessage]


class Rollback(Request):
    """Back to an older version."""

    version: int = Field(ge=1, description="whose content is to be live again")


class DeadLetter(BaseModel):
    """A document that failed for good."""

    document_id: str
    version: int
    collection: str
    tenant: str
    name: str
    live_version: int | None = Field(description="an older version that searches still see")
    step: str | None = Field(description="where it failed")
    attempts: int = Field(description="of that step")
    crashes: int = Field(description="attempts that ended with their worker")
    submitted_at: float
    failed_at: float
    error: FailureMessage


class DeadLetters(BaseModel):
    """Documents whose newest version failed, the latest first."""

    dead_letters: list[DeadLetter]
    next_after: str | None = Field(description="send as `after` for the next page")


class Which(Request):
    """Which dead letters; every field that is given must hold."""

    collection: str | None = None
    tenant: str | None = None
    reason: str | None = Field(None, description="the `type` of the error, such as `worker-lost`")
    older_than: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="failed at least so many seconds ago"
    )
    newer_than: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="failed at most so many seconds ago"
    )


class DeadLettersQuery(Which):
    """A page of dead letters."""

    limit: int = Field(50, ge=1, le=500)
    after: str | None = Field(None, description="`next_after` of the page before")


class Retry(Which):
    """Which dead letters to try again."""

    document_ids: list[str] | None = Field(None, max_length=500)
    all: bool = Field(False, description="needed where nothing else is named")


class Retried(BaseModel):
    """What waits for a worker again."""

    retried: list[str] = Field(description="document ids")
    more: bool = Field(description="send the same again for the rest")


class Documents(BaseModel):
    """A page of documents, newest first."""

    documents: list[Document]
    states: dict[str, int] = Field(description="documents of the collection by ledger state")
    next_before: float | None = Field(description="send as `before` for the next page")


class Event(BaseModel):
    """One thing that happened to a document."""

    event_id: int
    kind: EventKind
    document_id: str
    collection: str
    tenant: str
    version: int | None
    step: Step | None
    at: float
    data: dict[str, Any] | None = Field(
        description="a step's counts or attempt, why it failed, or a deletion's receipt"
    )


class StreamEnd(BaseModel):
    """The last of a stream: the state in which the document is now."""

    state: str


class NewBatch(Request):
    """Documents that are going to be sent together."""

    batch_id: str | None = Field(None, pattern=NAME, description="any name; default a new one")
    expected: int | None = Field(
        None, ge=0, lt=2**31, description="how many documents it will have, for the time left"
    )


ItemState = Literal["waiting", "working", "stalled", "live", "failed", "superseded", "deleted"]


class BatchDocument(BaseModel):
    """One document of a batch."""

    document_id: str
    version: int
    collection: str
    name: str
    state: ItemState
    unchanged: bool = Field(description="its content was there already")
    error: "FailureMessage | None"


class BatchDocuments(BaseModel):
    """A page of a batch's documents."""

    documents: list[BatchDocument]
    next_after: str | None = Field(description="send as `after` for the next page")


class Batch(BaseModel):
    """How far documents that were sent together are."""

    batch_id: str
    created_at: float
    started_at: float | None = Field(description="when the first was submitted")
    expected: int | None
    submitted: int
    unchanged: int = Field(description="of these, those whose content was there already")
    states: dict[ItemState, int] = Field(description="documents by state")
    left: int = Field(description="not done yet, of the expected ones where that is known")
    seconds: float | None = Field(description="since the first submission; until the end if over")
    documents_per_minute: float | None = Field(
        description="that went live, over the last five minutes; null where none did"
    )
    chunks_per_minute: float | None
    seconds_left: float | None = Field(
        description="at the pace of these minutes; null while nobody can say"
    )
    failures: list[BatchDocument] = Field(description="the first of those that failed")


class NewWebhook(Request):
    """Where to send which events."""

    url: str = Field(max_length=2048, description="takes the events by POST")
    collection: str | None = Field(None, description="of which collection; default every one")
    events: list[EventKind] = Field(
        ["document.live", "document.failed", "document.deleted"], min_length=1, max_length=100
    )
    secret: str | None = Field(
        None, max_length=128, description="`whsec_` and 24 to 64 bytes in base64; default a new one"
    )


class Webhook(BaseModel):
    """Who is told of what."""

    webhook_id: str
    url: str
    collection: str | None
    events: list[EventKind]
    created_at: float
    stopped_at: float | None = Field(description="since when its receiver is gone (410)")


class WebhookMade(Webhook):
    """A new webhook; the secret is shown this once."""

    secret: str


class Webhooks(BaseModel):
    """Every webhook, oldest first."""

    webhooks: list[Webhook]


class Delivery(BaseModel):
    """One event on its way to one receiver, or there."""

    delivery_id: str = Field(description="the header `webhook-id`, the same at every try")
    event_id: int
    type: EventKind
    document_id: str
    state: DeliveryState
    created_at: float
    attempts: int
    attempted_at: float | None
    next_at: float | None = Field(description="when it is tried again")
    status: int | None = Field(description="of the last answer")
    error: str | None


class Deliveries(BaseModel):
    """A page of a webhook's deliveries, newest events first."""

    deliveries: list[Delivery]
    next_before: int | None = Field(description="send as `before` for the next page")


class TextSlice(BaseModel):
    """A part of a document's extracted text."""

    document_id: str
    start: int
    end: int
    length: int = Field(description="of the whole text")
    text: str


class Task(BaseModel):
    """One submission or deletion."""

    task_id: str
    kind: Literal["ingest", "delete"]
    document_id: str
    version: int | None
    state: Literal["waiting", "working", "stalled", "done", "failed", "superseded"]
    steps_done: int
    steps: int
    error: FailureMessage | None


class Deleted(BaseModel):
    """A deletion on its way: hidden already, removed soon."""

    document_id: str
    task_id: str
    task_url: str
    status_url: str


class Health(BaseModel):
    """The desk itself is alive."""

    status: Literal["ok"]
    version: str


class Part(BaseModel):
    """One part of the system."""

    ready: bool
    reason: str | None = None


class Readiness(BaseModel):
    """Whether work that is sent now will be done."""

    ready: bool
    parts: dict[str, Part]
