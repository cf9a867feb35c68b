"""What the desk takes and gives, beside searches (retrieval/messages.py)."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from config.settings import StoreKind
from stores import naming
from stores.metrics import Metric
from stores.options import Options
from stores.schemas import NAME


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
    documents: int = Field(description="how many are live")


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
    title: str = Field("", max_length=1024)
    properties: dict[str, Any] = Field(
        {}, description="what filters see: strings, numbers, booleans, lists"
    )
    allow_duplicate: bool = Field(
        False, description="store it even where another name holds the same text"
    )


class UploadForm(BaseModel):
    """A document sent as a file (multipart/form-data)."""

    file: str = Field(json_schema_extra={"format": "binary"})
    name: str | None = Field(
        None, description="identity in the collection; default the file's name"
    )
    tenant: str = Field("", description="whose document; of a collection with tenants")
    title: str = ""
    properties: str = Field("{}", description="a JSON object")
    allow_duplicate: bool = False


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


class Documents(BaseModel):
    """A page of documents, newest first."""

    documents: list[Document]
    states: dict[str, int] = Field(description="documents of the collection by ledger state")
    next_before: float | None = Field(description="send as `before` for the next page")


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
