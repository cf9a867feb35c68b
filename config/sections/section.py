"""The base classes of the sections of settings."""

from ipaddress import IPv4Network, IPv6Network, ip_network

from pydantic import BaseModel, ConfigDict, field_validator


class Section(BaseModel):
    """One group of settings; an unknown key in it is an error."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False
    )


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
