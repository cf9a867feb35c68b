"""Calls to addresses that users name: sources of documents and receivers of webhooks."""

from pydantic import Field

from callslip.config.sections.section import Calling


class SourcesSettings(Calling):
    """Fetching documents from URLs, folders and buckets."""

    allow_networks: str | None = Field(
        default=None,
        description="internal networks that a URL may lead to, such as `10.0.0.0/8,"
        " 192.168.1.7`; public addresses are always allowed",
    )
    timeout_seconds: float = Field(default=120.0, gt=0, description="the longest time for one file")
    slice_seconds: float = Field(
        default=20.0,
        gt=0,
        description="the time after which a sync pauses for other work, then continues",
    )


class WebhookSettings(Calling):
    """Webhooks: how the server delivers events to receivers."""

    allow_networks: str | None = Field(
        default=None,
        description="internal networks in which receivers may be, such as `127.0.0.0/8,"
        " 10.1.2.3`; public addresses are always allowed",
    )
    timeout_seconds: float = Field(
        default=10.0, gt=0, description="the longest time for a receiver's response"
    )
    give_up_days: float = Field(
        default=3.0, ge=0, description="how long a failed delivery is retried"
    )
