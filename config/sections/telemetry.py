"""Settings of the spans that are sent to a collector."""

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from callslip.config.sections.section import Section


class TelemetrySettings(Section):
    """Spans of answers, for a collector that speaks OpenTelemetry's protocol (OTLP) over HTTP."""

    otlp_endpoint: str | None = Field(
        default=None,
        description="collector URL, such as http://127.0.0.1:4318, mostly without /v1/traces;"
        " unset: nothing is sent",
    )
    service_name: str = Field(
        default="callslip", min_length=1, description="name of the service in the spans"
    )
    text: bool = Field(
        default=False,
        description="whether the spans contain questions, prompts, passages and answers",
    )

    @field_validator("otlp_endpoint")
    @classmethod
    def _is_an_address(cls, text: str | None) -> str | None:
        if text is not None:
            parts = urlsplit(text)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("is no http or https address")
        return text
