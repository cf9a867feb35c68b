"""A claimed step: what it works with, and the name of its artifact."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from callslip.config.settings import ChunkingSettings
from callslip.ingestion.artifacts import (
    EXTRACTED,
    Artifact,
    T,
    artifact_name,
    made_alike,
)
from callslip.ingestion.chunks.title_context import line_of
from callslip.ingestion.context import StepContext
from callslip.languages import DEFAULT
from callslip.messages.options import Options
from callslip.models.embedders.choice import embedder_of
from callslip.models.embedders.contract import Embedder
from callslip.models.text.analyzer import Analyzer
from callslip.models.text.kinds import analyzer_of, kind_of, version_of_kind
from callslip.stores.ledger import Claim, CollectionRecord, Lease, Step, VersionRecord
from callslip.stores.records import (
    ENRICHED_PROPERTIES,
    VALIDITY,
)


@dataclass(frozen=True)
class Work:
    """A claimed step with its context and its lease."""

    context: StepContext
    claim: Claim
    lease: Lease
    collection_of: Callable[[str], CollectionRecord]
    """Returns a collection by name, read once for all steps of a message."""
    counts: dict[str, int] = field(default_factory=dict)
    """Counters that the step reports in addition to its output."""
    _outputs: dict[Step, Any] = field(default_factory=dict)

    @property
    def version(self) -> VersionRecord:
        """The version that the step processes."""
        return self.claim.record

    @property
    def collection(self) -> CollectionRecord:
        """The collection of the version."""
        return self.collection_of(self.version.collection)

    @property
    def options(self) -> Options:
        """The options of the collection."""
        return self.collection.options

    @property
    def models(self) -> dict[str, str]:
        """The models of the collection's vectors by name; "" names the default one."""
        return self.collection.models

    def embedder(self, vector_name: str = "") -> Embedder:
        """The embedder of the vectors of this name; the present one if there is none."""
        its = self.context
        model = self.models[vector_name]
        return embedder_of(model, its.embedder, its.previous, its.further.values())

    @property
    def analyzed_by(self) -> str:
        """The version of the collection's analyzer, as its record names it."""
        return self.collection.analyzer

    @property
    def analyzer(self) -> Analyzer:
        """The analyzer of the collection."""
        return analyzer_of(self.analyzed_by, self.context.analyzer)

    @property
    def chunking(self) -> ChunkingSettings:
        """The lengths of the version's chunks: its own, or those of the settings."""
        own = self.version.chunking
        return ChunkingSettings(**own) if own else self.context.settings.chunking

    def read(self, step: Step, kind: Artifact[T]) -> T:
        """Return the output of an earlier step, which nobody changes.

        Raises FileNotFoundError if the artifact is not stored.
        """
        if step not in self._outputs:
            name = self.claim.artifacts.get(step)
            if name is None:
                raise FileNotFoundError(f"{step} of {self.version.document_id} left no artifact")
            content = self.context.blobs.read(self.version.document_id, name)
            self._outputs[step] = kind.load(content)
        return cast("T", self._outputs[step])

    @cached_property
    def previous_artifacts(self) -> dict[Step, str]:
        """The artifact names of the previous version, by step."""
        if self.version.previous_version is None:
            return {}
        return self.context.ledger.inventory.artifacts(
            self.version.document_id, self.version.previous_version
        )

    def previous_name(self, step: Step) -> str | None:
        """Return the previous version's artifact name if its settings are equal, else None."""
        name = self.previous_artifacts.get(step)
        return name if name and made_alike(name, step, **matters(self, step)) else None

    def previous(self, step: Step, kind: Artifact[T]) -> T | None:
        """Return the previous version's output if its settings are equal and it is stored."""
        name = self.previous_name(step)
        if name is None or not self.context.blobs.exists(self.version.document_id, name):
            return None
        return kind.load(self.context.blobs.read(self.version.document_id, name))


def name_of(work: Work) -> str:
    """Return the artifact name of the claimed step."""
    step, made = work.claim.step, work.claim.artifacts
    if step == "extract":
        return artifact_name(step, *_extracted_from(work), **matters(work, step))
    if step == "chunk":
        return _name_of_chunks(work)
    sources: dict[Step, str] = {
        "sectionize": made.get("extract", ""),
        "enrich": made.get("chunk", ""),
        "embed": made.get("chunk", ""),
    }
    return artifact_name(step, sources[step], **matters(work, step))


def _extracted_from(work: Work) -> tuple[str, ...]:
    """Return what the extracted text depends on: the original and the corrections of its text."""
    made = (str((c.start, c.context, c.corrected_context)) for c in work.version.corrections)
    return work.version.sha256, *made


def _name_of_chunks(work: Work) -> str:
    """Return the artifact name of the chunks.

    Chunks depend on the cuts of the previous version. If the sections are the same, the previous
    version's chunks are reused.
    """
    sections = work.claim.artifacts.get("sectionize", "")
    previous = work.previous_name("chunk")
    if previous is not None and work.previous_artifacts.get("sectionize") == sections:
        return previous
    return artifact_name("chunk", sections, previous or "", **matters(work, "chunk"))


def matters(work: Work, step: Step) -> dict[str, Any]:
    """Return the settings that affect a step's output."""
    match step:
        case "extract":
            return {
                "filename": work.version.filename,
                "json": _json_fields(work),
                "masked": work.options.scrub == "text",
            } | _layout_server(work)
        case "chunk":
            return work.chunking.model_dump() | _languages(work)
        case "sectionize":
            return _languages(work)
        case "enrich":
            return _enriched_by(work)
        case "embed":
            named = {name: model for name, model in work.models.items() if name}
            matters = {"model": work.embedder().model, "title": line_of(title_of(work))}
            return matters | ({"named": named} if named else {})
    return {}


def _languages(work: Work) -> dict[str, Any]:
    """Return the languages if they differ from the default, else an empty mapping."""
    codes = work.context.settings.language_codes
    return {} if codes == DEFAULT else {"languages": codes}


def _layout_server(work: Work) -> dict[str, Any]:
    """Return what is sent to the layout server, an empty mapping without one."""
    settings = work.context.settings.layout
    return {"layout": settings.formats} if work.context.layout_server else {}


def _json_fields(work: Work) -> list[str | None]:
    """Return the JSON fields of the collection; the settings supply those that it does not have."""
    settings, own = work.context.settings.extract, work.options.json_fields.settings()
    usual = {n: getattr(settings, n) for n in ("json_title", "json_text", "json_properties")}
    return list((usual | own).values())


_UNRELATED = {
    *("analyzer", "ranking", "json_fields", "keep_queries", "valid_from_default"),
    *("facets", "apply_proposals"),
}
"""Options that do not affect enrichment; the analyzer is that of the collection's record."""


def _enriched_by(work: Work) -> dict[str, Any]:
    context, options = work.context, work.options
    return {
        "analyzer": version_of_kind(context.settings.language_codes, kind_of(work.analyzed_by)),
        "recognizer": context.recognizer.version,
        "options": options.model_dump(mode="json", exclude=_UNRELATED),
        "confirmer": context.confirmer.model if options.confirm and context.confirmer else "",
        "name": work.version.name,
        "title": line_of(title_of(work)),
        "given": {n: v for n, v in work.version.properties.items() if n in ENRICHED_PROPERTIES},
    } | ({"by_hand": by_hand} if (by_hand := bounds_by_hand(work.version)) else {})


def bounds_by_hand(version: VersionRecord) -> list[str]:
    """Return the bounds of validity that an edit set; they replace those of single passages."""
    return [name for name in VALIDITY if f"properties.{name}" in version.by_hand]


def title_of(work: Work) -> str:
    return work.version.title or work.read("extract", EXTRACTED).title or ""
