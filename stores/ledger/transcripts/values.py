"""A live document with its versions, its steps and its chunks as one value, which can be moved."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from callslip.readers import EVERYONE, LONGEST_READER, MOST_READERS, READER, Readers, audience_of
from callslip.stores.ledger.base.corrections import MOST_CORRECTIONS, Corrections
from callslip.stores.ledger.base.records import Failure, Step
from callslip.stores.ledger.documents.pages import PageTable
from callslip.stores.naming import LONGEST_URL, WEB_URL
from callslip.vocabulary import LANGUAGE

_Count = Annotated[int, Field(ge=0, lt=2**31)]
_Name = Annotated[str, Field(max_length=1024)]
_Reader = Annotated[str, Field(pattern=READER, max_length=LONGEST_READER)]
_Time = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True)
class VersionRow:
    """One content of a document that is or was live, or failed."""

    version: _Count
    state: Literal["live", "superseded", "failed"]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    size: _Count
    filename: _Name
    title: _Name
    properties: dict[str, Any]
    error: Failure | None
    created_at: _Time
    finished_at: _Time | None
    restores: _Count | None = None
    superseded_by: _Count | None = None
    pages: PageTable | None = None
    corrections: Annotated[Corrections, Field(max_length=MOST_CORRECTIONS)] | None = None
    url: Annotated[str, Field(max_length=LONGEST_URL, pattern=f"^$|{WEB_URL}")] = ""
    language: Annotated[str, Field(pattern=f"^$|{LANGUAGE}")] = ""
    by_hand: tuple[_Name, ...] = ()
    edited: tuple[_Name, ...] | None = None
    chunking: dict[str, _Count] | None = None


@dataclass(frozen=True)
class StepRow:
    """A completed step of the live version. The only artifact that moves is the extracted text."""

    step: Step
    attempts: _Count
    crashes: _Count
    started_at: _Time | None
    finished_at: _Time | None
    artifact: Annotated[str, Field(max_length=256)] | None
    counts: dict[str, int] | None


@dataclass(frozen=True)
class ChunkRow:
    """A chunk of the live version; `first_version` is the first one with it at this position."""

    first_version: _Count
    text_hash: Annotated[str, Field(max_length=64)]
    start: _Count | None = None
    end: _Count | None = None


@dataclass(frozen=True)
class Transcript:
    """A live document. `chunks` are those of the live version, by id.

    `readers` is None if everyone may read it.
    """

    document_id: str
    tenant: Annotated[str, Field(max_length=128)]
    name: _Name
    live_version: Annotated[int, Field(ge=1, lt=2**31)]
    created_at: _Time
    versions: tuple[VersionRow, ...]
    steps: tuple[StepRow, ...]
    chunks: dict[str, ChunkRow]
    parent_id: Annotated[str, Field(pattern="^[0-9A-Za-z_-]{1,32}$")] | None = None
    parent_version: _Count | None = None
    readers: Annotated[tuple[_Reader, ...], Field(max_length=MOST_READERS)] | None = None

    @property
    def audience(self) -> str:
        """The id of its list of readers."""
        return audience_of(self.list_of_readers)

    @property
    def list_of_readers(self) -> Readers:
        """Its readers, sorted."""
        return EVERYONE if self.readers is None else tuple(sorted(set(self.readers)))

    @property
    def live(self) -> VersionRow:
        """The live version. Raises StopIteration if an untrusted transcript has none."""
        return next(v for v in self.versions if v.version == self.live_version)


@dataclass(frozen=True)
class Snapshot:
    """A transcript with values that show later changes of the document.

    `upserts` is the number of upserts of the document that have begun. `upserting` is the end of
    the lease of a running upsert: until then the chunks in the store may differ from the live ones.
    """

    transcript: Transcript
    upserts: int
    upserting: float | None
