"""Settings of the invokers of Genie Flow."""

from pathlib import Path

from pydantic import Field

from callslip.config.sections.section import Section


class GenieSettings(Section):
    """Invokers of Genie Flow's package for Weaviate, over HTTP."""

    meta: Path | None = Field(
        default=None,
        description="a meta.yaml with defaults for `parameters` of requests; unset: no defaults",
    )
