"""Calls to addresses that users name: sources of documents and receivers of webhooks."""

from ipaddress import IPv4Network, IPv6Network, ip_network

from pydantic import Field, field_validator

from callslip.config.section import Section


class Calling(Section):
    """Calls to addresses that users name: public addresses, and the allowed networks."""

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
