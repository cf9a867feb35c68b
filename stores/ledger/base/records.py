"""The ledger's records as frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from callslip.errors import BY_SLUG, CallslipError
from callslip.messages.options import Options
from callslip.readers import EVERYONE, Readers, audience_of
from callslip.stores.ledger.base.corrections import Corrections
from callslip.stores.records import CollectionSchema
from callslip.vocabulary import STEPS as STEPS
from callslip.vocabulary import DocumentState as DocumentState
from callslip.vocabulary import Step as Step
from callslip.vocabulary import StepState as StepState
from callslip.vocabulary import Value
from callslip.vocabulary import Vectors as Vectors
from callslip.vocabulary import VersionState as VersionState


@dataclass(frozen=True)
class Failure:
    """Why an operation failed: the error's slug, a sentence, and advice to the user."""

    type: str
    detail: str
    advice: str
    step: str | None = None

    @classmethod
    def of(cls, error: CallslipError, step: str | None = None) -> "Failure":
        """The failure that an error describes."""
        return cls(error.slug, error.detail, error.advice, step)

    @property
    def title(self) -> str:
        """The slug as words."""
        known = BY_SLUG.get(self.type)
        return known(self.detail).title if known else self.type

    def as_json(self) -> dict[str, Any]:
        """The JSON that the ledger stores and the API returns."""
        shown = {"type": self.type, "detail": self.detail, "advice": self.advice}
        return shown | ({"step": self.step} if self.step else {})


ATTACHED = "attached"
"""The store kind of a collection whose rows are in a table that Callslip does not own."""

ATTACHED_CHROMA = "attached-chroma"
"""The store kind of a collection whose rows are in a Chroma server that Callslip does not own."""

ATTACHED_KINDS = (ATTACHED, ATTACHED_CHROMA)


@dataclass(frozen=True)
class Attachment:
    """The schema and table name, unquoted, of the table whose rows are a collection's chunks.

    With `server`, the address of a Chroma server, these are the database and the collection there,
    of the server's `tenant`. The name of a tenant may be its password: it is never shown.
    """

    table_schema: str
    table_name: str
    vectors: Vectors
    server: str = ""
    tenant: str = field(default="", repr=False)

    @property
    def table(self) -> str:
        """The qualified table name, quoted for SQL."""
        return ".".join(quoted(part) for part in (self.table_schema, self.table_name))

    @property
    def shown(self) -> str:
        """The name for people."""
        return f"{self.table_schema}{'/' if self.server else '.'}{self.table_name}"


def quoted(name: str) -> str:
    """The name as a quoted SQL identifier, with any quotes in it escaped."""
    return '"{}"'.format(name.replace('"', '""'))


@dataclass(frozen=True)
class CollectionRecord:
    """A collection: a set of documents that are searched together, with its store and embedder."""

    name: str
    store: str
    embedder: str
    schema: CollectionSchema
    analyzer: str
    created_at: float
    options: Options
    attachment: Attachment | None = None

    @property
    def attached(self) -> bool:
        """Whether the chunks are rows of an attached table, which Callslip only reads."""
        return self.store in ATTACHED_KINDS

    @property
    def vectors_only(self) -> bool:
        """Whether the store of the collection has no keyword retriever."""
        return self.store == ATTACHED_CHROMA

    @property
    def models(self) -> dict[str, str]:
        """The models by the name of their vector; the name of the default vector is empty."""
        return {"": self.embedder, **self.schema.embedders}


@dataclass(frozen=True)
class Submission:
    """A new content for a document.

    Of one tenant's submissions the highest priority is processed first. A title, properties, URL
    or language of None keep the stored value if the bytes are the same; for other bytes they are
    empty.
    """

    name: str
    filename: str
    title: str | None
    sha256: str
    size: int
    properties: dict[str, Any] | None
    priority: int = 0
    batch: str = ""  # the id of the batch it was submitted in
    readers: Readers | None = None  # None: as before; of a new document, everyone
    url: str | None = None
    language: str | None = None
    keeps_edits: bool = False
    """Whether what edits set stays, also for other bytes: nobody states it with this submission."""


@dataclass(frozen=True)
class Edit:
    """Changes of what is known of a document, without another content.

    A field of None stays as it is; an empty text removes the value. `properties` are merged into
    the present ones, of which a value of None removes one; with `anew` they replace all of them.
    """

    title: str | None = None
    url: str | None = None
    language: str | None = None
    properties: Mapping[str, Value | None] = field(default_factory=dict)
    anew: bool = False
    readers: Readers | None = None


@dataclass(frozen=True)
class Accepted:
    """The result of a submission. `fresh` is false if the content was already live or queued."""

    document_id: str
    version: int
    fresh: bool


@dataclass(frozen=True)
class VersionRecord:
    """One content of a document, and what is known of it.

    `url` is the web address of the source, `language` a stated code; both may be empty. `edited`
    names what the edit that made this version changed (`title`, `properties.topic`); None if it was
    no edit. `by_hand` names, in the same form, the present values that edits set.
    """

    document_id: str
    version: int
    collection: str
    tenant: str
    name: str
    state: VersionState
    sha256: str
    size: int
    filename: str
    title: str
    properties: dict[str, Any]
    failure: Failure | None
    created_at: float
    finished_at: float | None
    priority: int = 0
    previous_version: int | None = None
    restores: int | None = None
    superseded_by: int | None = None
    corrections: Corrections = ()
    url: str = ""
    language: str = ""
    by_hand: tuple[str, ...] = ()
    edited: tuple[str, ...] | None = None
    chunking: dict[str, int] | None = None  # lengths of its chunks; None: those of the settings


@dataclass(frozen=True)
class StepRecord:
    """The state of one step of one version."""

    step: Step
    state: StepState
    attempts: int
    crashes: int
    worker: str | None
    lease_until: float | None
    retry_at: float | None
    started_at: float | None
    finished_at: float | None
    artifact: str | None
    counts: dict[str, int] = field(default_factory=dict)
    failure: Failure | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class DocumentRecord:
    """A document with its newest version and that version's steps.

    `parent_id` is the id of the parent document, such as the mail of which it is an attachment.
    `readers` is None if everyone may read it.
    """

    document_id: str
    collection: str
    tenant: str
    name: str
    live_version: int | None
    created_at: float
    deleted_at: float | None
    removed_at: float | None
    receipt: dict[str, Any] | None
    parent_id: str | None
    readers: Readers | None
    newest: VersionRecord
    steps: tuple[StepRecord, ...]
    state: DocumentState

    @property
    def etag(self) -> str:
        """The entity tag: it changes with the version and with the readers."""
        readers = EVERYONE if self.readers is None else self.readers
        return etag_of(self.newest.version, audience_of(readers))


def etag_of(version: int, audience: str) -> str:
    """The entity tag of a document with this newest version and audience."""
    return f"{version}-{audience[:8]}" if audience else str(version)


@dataclass(frozen=True)
class BatchReport:
    """The progress of a batch of submissions.

    `states` counts documents by `DocumentState`, superseded ones included; `unchanged` counts those
    whose content was stored already. `left` counts those that are not done, of the `expected`
    number if the client stated it. Rates are of the last few minutes, None if nothing was done
    then; `seconds_left` is None if it cannot be estimated.
    """

    batch_id: str
    created_at: float
    started_at: float | None
    expected: int | None
    submitted: int
    unchanged: int
    states: Mapping[str, int]
    left: int
    seconds: float | None
    documents_per_minute: float | None
    chunks_per_minute: float | None
    seconds_left: float | None


@dataclass(frozen=True)
class BatchItem:
    """One submission of a batch. `fresh` is false if its content was stored already."""

    document_id: str
    version: int
    collection: str
    name: str
    state: str
    fresh: bool
    failure: Failure | None


@dataclass(frozen=True)
class Claim:
    """A lease on one step. `token` is the fencing token: only its holder may finish the step.

    `record`, `artifacts` (of the earlier steps) and `audience` (of the document) have the state at
    the time of the claim.
    """

    document_id: str
    version: int
    step: Step
    token: int
    lease_seconds: float
    record: VersionRecord
    artifacts: Mapping[Step, str]
    document_created_at: float
    audience: str


@dataclass(frozen=True)
class Dispatch:
    """A version to dispatch to the broker, and the step at which it continues.

    Versions with the same number `message` travel in one message.
    """

    document_id: str
    version: int
    step: Step
    message: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Refusal:
    """The reason why a worker may not do a step now.

    done: the step is done, continue with the next one; leased: another worker has the lease, or the
    time of the next attempt has not come; gone: the version failed, was superseded or was deleted.
    """

    reason: Literal["done", "leased", "gone"]
