"""What the ledger says, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from callslip.errors import BY_SLUG, CallslipError
from stores.options import Options
from stores.records import CollectionSchema

Step = Literal["extract", "sectionize", "chunk", "enrich", "embed", "upsert"]
STEPS: tuple[Step, ...] = ("extract", "sectionize", "chunk", "enrich", "embed", "upsert")
"""The steps of a document, in order."""

VersionState = Literal["queued", "live", "superseded", "failed"]
StepState = Literal["pending", "running", "done", "failed"]

DocumentState = Literal["waiting", "working", "stalled", "live", "failed", "deleted"]
"""What a person sees. waiting: for a free worker; stalled: nobody has it until the next sweep."""


@dataclass(frozen=True)
class Failure:
    """Why something failed: the error's slug, a sentence, and what to do."""

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
        """The slug in words."""
        known = BY_SLUG.get(self.type)
        return known(self.detail).title if known else self.type

    def as_json(self) -> dict[str, Any]:
        """As the ledger keeps it and the API shows it."""
        shown = {"type": self.type, "detail": self.detail, "advice": self.advice}
        return shown | ({"step": self.step} if self.step else {})


ATTACHED = "attached"
"""The kind of store of a collection that is a table of somebody else."""

Vectors = Literal["ours", "none"]
"""Of an attached table: made by this installation's embedder, or by one that it does not know."""


@dataclass(frozen=True)
class Attachment:
    """The table, unquoted, whose rows are a collection's chunks."""

    table_schema: str
    table_name: str
    vectors: Vectors

    @property
    def table(self) -> str:
        """The table's name, in SQL."""
        return ".".join(quoted(part) for part in (self.table_schema, self.table_name))


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever is in it."""
    return '"{}"'.format(name.replace('"', '""'))


@dataclass(frozen=True)
class CollectionRecord:
    """Documents that are searched together, and what they are stored and embedded with."""

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
        """Whether its chunks are a table of somebody else, which is only read."""
        return self.store == ATTACHED


@dataclass(frozen=True)
class Submission:
    """A new content of a document, on its way in; of one tenant's the highest priority first.

    What is None is not said: the same content again leaves it as it was, another one has none.
    """

    name: str
    filename: str
    title: str | None
    sha256: str
    size: int
    properties: dict[str, Any] | None
    priority: int = 0
    batch: str = ""  # what it was submitted together with


@dataclass(frozen=True)
class Accepted:
    """What became of a submission. `fresh` is false when this content is there or on its way."""

    document_id: str
    version: int
    fresh: bool


@dataclass(frozen=True)
class VersionRecord:
    """One content of a document."""

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
    former: int | None = None
    restores: int | None = None
    superseded_by: int | None = None


@dataclass(frozen=True)
class StepRecord:
    """How far one step of one version is."""

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


@dataclass(frozen=True)
class DocumentRecord:
    """A document with its newest version and that version's steps.

    `parent_id` is the document that it came within, such as a mail.
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
    newest: VersionRecord
    steps: tuple[StepRecord, ...]
    state: DocumentState


@dataclass(frozen=True)
class BatchReport:
    """How far what was submitted together is.

    `states` counts documents as `DocumentState` does, and superseded ones; `unchanged` are those of
    them whose content was there already. `left` are not done yet, of the `expected` ones if that is
    said. Rates are of the last minutes, None where nothing was done in them; `seconds_left` is None
    while nobody can say.
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
    """One submission of a batch. Not `fresh`: its content was there already."""

    document_id: str
    version: int
    collection: str
    name: str
    state: str
    fresh: bool
    failure: Failure | None


@dataclass(frozen=True)
class Claim:
    """The right to do one step. `token` is the fencing token: only its holder may finish.

    `record` and `artifacts` (of the steps before) are as they stood when the step was claimed.
    """

    document_id: str
    version: int
    step: Step
    token: int
    lease_seconds: float
    record: VersionRecord
    artifacts: Mapping[Step, str]


@dataclass(frozen=True)
class Nudge:
    """A version to send, and the step to send it to."""

    document_id: str
    version: int
    step: Step


@dataclass(frozen=True)
class Refusal:
    """Why a step may not be done now.

    done: it is done already, go on with the next; leased: another worker has it, or it is too
    early; gone: the version failed, was superseded or deleted.
    """

    reason: Literal["done", "leased", "gone"]
