"""All settings, typed; each section is a class. config/load.py loads their values."""

import os
from pathlib import Path
from typing import Self

from pydantic import Field, PrivateAttr, field_validator

from callslip.config.sections.agent import AgentSettings
from callslip.config.sections.annotator import AnnotatorSettings
from callslip.config.sections.backup import BackupSettings
from callslip.config.sections.calling import (
    SourcesSettings,
    WebhookSettings,
)
from callslip.config.sections.faq import FaqSettings
from callslip.config.sections.genie import GenieSettings
from callslip.config.sections.identity import AuditSettings, OidcSettings
from callslip.config.sections.ingestion import (
    ChunkingSettings,
    ExtractSettings,
    IngestSettings,
    LayoutSettings,
    MaintenanceSettings,
)
from callslip.config.sections.models import (
    EmbedderSettings,
    EmbeddingModel,
    FurtherEmbedderSettings,
    LlmSettings,
    PreviousEmbedderSettings,
)
from callslip.config.sections.ranking import (
    FacetsSettings,
    MemorySettings,
    ProposalsSettings,
    RerankSettings,
    SearchSettings,
    TracesSettings,
)
from callslip.config.sections.section import Section
from callslip.config.sections.servers import LOOPBACK as LOOPBACK
from callslip.config.sections.servers import (
    ApiSettings,
    BlobSettings,
    BrokerSettings,
    LedgerSettings,
    LogSettings,
)
from callslip.config.sections.stores import (
    ChromaSettings,
    CrateSettings,
    KeywordSettings,
    TfidfSettings,
    WeaviateSettings,
)
from callslip.config.sections.telemetry import TelemetrySettings
from callslip.languages import BUILT_IN, DEFAULT, Codes
from callslip.vocabulary import StoreKind as StoreKind

__all__ = [
    "LOOPBACK",
    "MEGABYTE",
    "AgentSettings",
    "AnnotatorSettings",
    "ApiSettings",
    "AuditSettings",
    "BackupSettings",
    "BlobSettings",
    "BrokerSettings",
    "ChromaSettings",
    "ChunkingSettings",
    "CrateSettings",
    "EmbedderSettings",
    "EmbeddingModel",
    "ExtractSettings",
    "FacetsSettings",
    "FaqSettings",
    "FurtherEmbedderSettings",
    "GenieSettings",
    "IngestSettings",
    "KeywordSettings",
    "LayoutSettings",
    "LedgerSettings",
    "LlmSettings",
    "LogSettings",
    "MaintenanceSettings",
    "MemorySettings",
    "OidcSettings",
    "PreviousEmbedderSettings",
    "ProposalsSettings",
    "RerankSettings",
    "SearchSettings",
    "Settings",
    "SourcesSettings",
    "StoreKind",
    "TelemetrySettings",
    "TfidfSettings",
    "TracesSettings",
    "WeaviateSettings",
    "WebhookSettings",
]

MEGABYTE = 1_000_000

OF_A_QUESTION = 4
"""Cores that embed one question where the machine has them: for more it is too short."""


def _codes(text: str | None) -> list[str]:
    return (text or "").replace(",", " ").split()


class Settings(Section):
    """All settings. The environment variable of a key is CALLSLIP_ and the key, with `__` for
    `.`."""

    data_dir: Path = Field(default=Path("var"), description="folder of all persistent data")
    languages: str | None = Field(
        default=None,
        description="codes of languages whose rules apply in addition to English and Korean, such"
        " as `de`; documents that were ingested before have their old terms until they are ingested"
        " again",
    )
    api: ApiSettings = ApiSettings()
    oidc: OidcSettings = OidcSettings()
    audit: AuditSettings = AuditSettings()
    broker: BrokerSettings = BrokerSettings()
    ledger: LedgerSettings = LedgerSettings()
    blobs: BlobSettings = BlobSettings()
    store: StoreKind = Field(default="chroma", description="the store of new collections")
    chroma: ChromaSettings = ChromaSettings()
    keyword: KeywordSettings = KeywordSettings()
    weaviate: WeaviateSettings = WeaviateSettings()
    crate: CrateSettings = CrateSettings()
    tfidf: TfidfSettings = TfidfSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    previous_embedder: PreviousEmbedderSettings = PreviousEmbedderSettings()
    embedders: dict[str, FurtherEmbedderSettings] = Field(
        default_factory=dict, description="the embedders of named vectors, by name"
    )
    llm: LlmSettings = LlmSettings()
    agent: AgentSettings = AgentSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    extract: ExtractSettings = ExtractSettings()
    layout: LayoutSettings = LayoutSettings()
    ingest: IngestSettings = IngestSettings()
    sources: SourcesSettings = SourcesSettings()
    search: SearchSettings = SearchSettings()
    facets: FacetsSettings = FacetsSettings()
    memory: MemorySettings = MemorySettings()
    proposals: ProposalsSettings = ProposalsSettings()
    traces: TracesSettings = TracesSettings()
    rerank: RerankSettings = RerankSettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    backup: BackupSettings = BackupSettings()
    webhooks: WebhookSettings = WebhookSettings()
    log: LogSettings = LogSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    genie: GenieSettings = GenieSettings()
    annotator: AnnotatorSettings = AnnotatorSettings()
    faq: FaqSettings = FaqSettings()
    _embeds_questions: bool = PrivateAttr(default=False)

    @field_validator("languages")
    @classmethod
    def _languages_have_rules(cls, text: str | None) -> str | None:
        unknown = [code for code in _codes(text) if code not in BUILT_IN]
        if unknown:
            raise ValueError(f"no rules for {', '.join(unknown)}; there are {', '.join(BUILT_IN)}")
        return text

    @property
    def language_codes(self) -> Codes:
        """Codes of the languages whose rules apply, English and Korean first."""
        return tuple(dict.fromkeys((*DEFAULT, *_codes(self.languages))))

    @property
    def api_url(self) -> str:
        """The address of the server for clients, without a slash at the end."""
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
        """The folder of the Document Retriever's files."""
        return self.annotator.folder or self.data_dir.absolute() / "annotator"

    @property
    def embedder_threads(self) -> int:
        """Threads of one inference, so that all ingest processes together use each core once."""
        return self.embedder.threads or max(1, (os.cpu_count() or 1) // self.ingest.concurrency)

    @property
    def inferences_at_once(self) -> int:
        """The most inferences of a process at once: one where it embeds passages; where it embeds
        questions, as many as the cores have room for."""
        cores = os.cpu_count() or 1
        return max(1, round(cores / self.embedder_threads)) if self._embeds_questions else 1

    def for_questions(self) -> Self:
        """The settings of a process that embeds questions: each on four cores, if there are."""
        threads = max(self.embedder_threads, min(OF_A_QUESTION, os.cpu_count() or 1))
        both = {"embedder": self.embedder, "previous_embedder": self.previous_embedder}
        chosen = {
            name: each.model_copy(update={"threads": each.threads or threads})
            for name, each in both.items()
        }
        settings = self.model_copy(update=chosen)
        settings._embeds_questions = True
        return settings

    @property
    def models_dir(self) -> Path:
        """The folder of models that are converted once from the contents of a wheel."""
        return self.data_dir.absolute() / "models"
