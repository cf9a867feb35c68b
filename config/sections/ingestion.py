"""Reading, chunking and indexing documents, and the regular checks of the stores."""

from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from callslip.config.sections.section import Section


class ChunkingSettings(Section):
    """How sections are cut into chunks; lengths in e5 tokens."""

    target_tokens: int = Field(default=450, ge=32, description="target length of a chunk")
    max_tokens: int = Field(default=500, ge=32, description="the longest chunk")
    overlap_tokens: int = Field(
        default=60, ge=0, description="text that a chunk shares with the previous chunk"
    )

    @model_validator(mode="after")
    def _lengths_fit(self) -> Self:
        if not self.overlap_tokens < self.target_tokens <= self.max_tokens:
            raise ValueError(
                "lengths must satisfy overlap_tokens < target_tokens <= max_tokens, not"
                f" {self.overlap_tokens} < {self.target_tokens} <= {self.max_tokens}"
            )
        return self


class ExtractSettings(Section):
    """Limits of the child process that reads a file."""

    timeout_seconds: float = Field(default=120.0, gt=0, description="the longest time for one file")
    memory_mb: int = Field(default=2048, ge=256, description="the most memory for one file")
    max_chars: int = Field(default=20_000_000, ge=1000, description="the longest text of one file")
    max_members: int = Field(
        default=1000,
        ge=0,
        description="the most documents in a ZIP or a mail, including nested ones",
    )
    max_members_mb: int = Field(
        default=200,
        ge=1,
        description="the most MB of these documents, unpacked",
    )
    max_depth: int = Field(default=4, ge=1, description="the deepest nesting of files within files")
    json_title: str | None = Field(
        default="title,name,subject",
        description="fields of a JSON record that may be its title; `a.b` is b within a",
    )
    json_text: str | None = Field(
        default=None, description="fields of a JSON record for its text; unset: all fields"
    )
    json_properties: str | None = Field(
        default=None, description="fields that become properties if a file is a single record"
    )
    ocr: Literal["auto", "off"] = Field(
        default="auto",
        description="auto: scanned PDFs and images are read if `tesseract` is installed",
    )
    ocr_languages: str = Field(
        default="kor+eng",
        pattern=r"^[A-Za-z_]+(\+[A-Za-z_]+)*$",
        description="languages of scanned pages, by tesseract's names; only installed ones count",
    )
    ocr_timeout_seconds: float = Field(
        default=1800.0, gt=0, description="the longest time for one file that is read by OCR"
    )


class LayoutSettings(Section):
    """A layout server, docling-serve: its models read PDFs and images instead of ours.

    Without an address no file leaves this machine.
    """

    base_url: str | None = Field(
        default=None, description="URL of the server, without /v1; unset: none is used"
    )
    api_key: SecretStr | None = Field(
        default=None, description="key of the server, if it requires one"
    )
    formats: str = Field(
        default="pdf,image",
        pattern=r"^(pdf|image)(,(pdf|image))?$",
        description="what is sent to the server: pdf, image, or both",
    )
    timeout_seconds: float = Field(
        default=900.0,
        gt=0,
        description="the longest time for one file; then it is read without the server",
    )
    max_mb: int = Field(
        default=200, ge=1, description="the longest response in MB of 1,000,000 bytes"
    )


class IngestSettings(Section):
    """Leases, attempts and the sweep."""

    concurrency: int = Field(default=2, ge=1, description="processes of the ingest worker")
    niceness: int = Field(
        default=10,
        ge=0,
        le=19,
        description="niceness of the ingest worker once it is ready, so that searches run first;"
        " from 10 on, the local embedder in bf16 computes there only while a core has nothing else"
        " to do",
    )
    idle_seconds: float = Field(
        default=300.0,
        ge=0,
        description="the idle time after which new processes without models replace those of the"
        " ingest worker, and the maintenance worker drops its embedder; the next document or task"
        " loads the models again; 0: never",
    )
    lease_seconds: float = Field(
        default=30.0,
        gt=0,
        description="the time without a renewal after which a step's lease expires",
    )
    max_attempts: int = Field(
        default=3, ge=1, description="attempts of one step before the document is a dead letter"
    )
    retry_base_seconds: float = Field(
        default=1.0, gt=0, description="the first wait after a transient error"
    )
    retry_for_seconds: float = Field(
        default=3600.0,
        ge=0,
        description="how long transient errors are retried, except those of stores and disks",
    )
    sweep_seconds: float = Field(
        default=5.0, gt=0, description="how often the sweep looks for stalled steps"
    )
    resend_seconds: float = Field(
        default=15.0, gt=0, description="the wait with empty queues after which a step is stalled"
    )
    batch_size: int | None = Field(
        default=None,
        ge=1,
        le=5000,
        description="number of objects per upsert; unset: from 256 at the start, tuned between 200"
        " and 1,000 for each store by the time and the errors of its upserts",
    )
    in_flight: int = Field(
        default=0,
        ge=0,
        description="messages in the queues at a time, from one tenant after the other, each with a"
        " document or with several small ones;"
        " 0: twice the processes of all ingest workers",
    )
    max_backlog_minutes: float = Field(
        default=45.0,
        ge=0,
        description="work that may wait, by the measured pace; beyond it the server responds 429."
        " A tenant, or a collection without tenants, may use two thirds",
    )
    max_backlog: int = Field(
        default=100_000,
        ge=1,
        description="waiting documents; beyond this number the server responds 429",
    )
    max_backlog_per_tenant: int = Field(
        default=20_000,
        ge=1,
        description="the same limit for a tenant, or a collection without tenants",
    )
    min_free_mb: int = Field(
        default=500,
        ge=0,
        description="free MB on the disk of data_dir; below it the server responds 507, and below"
        " half of it no step begins",
    )


class MaintenanceSettings(Section):
    """Periodic maintenance."""

    audit_hours: float = Field(
        default=24.0,
        ge=0,
        description="how often every store is compared with the ledger and repaired; 0: never",
    )
    probe_seconds: float = Field(
        default=10.0,
        gt=0,
        description="how often something is written into every store and read back",
    )
    keep_days: float = Field(
        default=30.0, gt=0, description="how long events, deliveries and batches are stored"
    )
