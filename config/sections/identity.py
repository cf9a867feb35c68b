"""Who may call the API by OpenID Connect, and how long the audit log is kept."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from callslip.callers import PERMISSIONS, Permission
from callslip.config.sections.section import Section

_RULE = re.compile(
    r"(?P<group>.+)=(?P<permissions>[a-z]+(?:\+[a-z]+)*)"
    r"(?:@(?P<collections>[^/@=]+)(?:/(?P<tenants>[^@=]+))?)?"
)

EVERYONE = "*"
"""The group of everyone with a valid token."""


@dataclass(frozen=True)
class GroupRule:
    """What the members of a group may do; `collections` and `tenants` None means all."""

    group: str
    permissions: frozenset[Permission]
    collections: frozenset[str] | None
    tenants: frozenset[str] | None


class OidcSettings(Section):
    """Users who log in by OpenID Connect; nothing is called without an issuer."""

    issuer: str | None = Field(
        default=None, description="URL of the issuer, as its tokens have it; unset: no such login"
    )
    client_id: str | None = Field(
        default=None, description="the page's client at the issuer; needed with oidc.issuer"
    )
    client_secret: SecretStr | None = Field(
        default=None, description="secret of the client; unset for a public client"
    )
    audience: str | None = Field(
        default=None,
        description="the audience that a bearer token must have; unset: oidc.client_id",
    )
    scope: str = Field(default="openid profile", description="what the login asks the issuer for")
    user_claim: str = Field(default="sub", description="the claim with the user's name")
    groups_claim: str = Field(default="groups", description="the claim with the user's groups")
    groups: str | None = Field(
        default=None,
        description="what groups may do: GROUP=PERMISSION+PERMISSION@COLLECTION,…/TENANT,…"
        " separated by `;`; `*` stands for everyone or all; the first rule with a group of the user"
        " applies, and without one the user may do nothing",
    )
    session_hours: float = Field(
        default=8.0, gt=0, description="how long a login of the page lasts"
    )
    seconds: float = Field(default=5.0, gt=0, description="the longest wait for the issuer")
    requests_per_minute: int | None = Field(
        default=None, ge=1, description="requests of each user; further ones are 429; unset: any"
    )
    documents_per_day: int | None = Field(
        default=None, ge=1, description="documents that each user may submit on a day (UTC)"
    )
    bytes_per_day: int | None = Field(
        default=None, ge=1, description="bytes of the documents that each user may submit on a day"
    )
    tokens_per_day: int | None = Field(
        default=None, ge=1, description="tokens of language models for each user on a day"
    )

    @field_validator("issuer")
    @classmethod
    def _is_safe(cls, issuer: str | None) -> str | None:
        if issuer is None:
            return None
        url = urlsplit(issuer)
        if not url.hostname or url.query or url.fragment or url.username:
            raise ValueError("must be a URL with a host, without a query, fragment or user")
        if url.scheme != "https" and url.hostname not in ("127.0.0.1", "localhost", "::1"):
            raise ValueError("must begin with https://, except on loopback")
        return issuer

    @field_validator("groups")
    @classmethod
    def _can_be_read(cls, text: str | None) -> str | None:
        read_rules(text or "")
        return text

    @model_validator(mode="after")
    def _has_a_client(self) -> "OidcSettings":
        if self.issuer is not None and not self.client_id:
            raise ValueError("oidc.issuer needs oidc.client_id")
        return self

    @property
    def rules(self) -> tuple[GroupRule, ...]:
        """The rules of `groups`, in order."""
        return read_rules(self.groups or "")


class AuditSettings(Section):
    """The log of every use of a key."""

    keep_days: int = Field(default=400, ge=1, description="days until rows of the log are deleted")


def read_rules(text: str) -> tuple[GroupRule, ...]:
    """Parse the rules of `oidc.groups`. Raises ValueError that names the rule."""
    return tuple(_rule(part.strip()) for part in text.split(";") if part.strip())


def _rule(text: str) -> GroupRule:
    match = _RULE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not GROUP=PERMISSION+PERMISSION@COLLECTION,…/TENANT,…")
    permissions = frozenset(match["permissions"].split("+"))
    if unknown := sorted(permissions - set(PERMISSIONS)):
        raise ValueError(f"{unknown[0]!r} is not one of {', '.join(PERMISSIONS)}")
    known = frozenset(each for each in PERMISSIONS if each in permissions)
    return GroupRule(
        match["group"].strip(), known, _names(match["collections"]), _names(match["tenants"])
    )


def _names(text: str | None) -> frozenset[str] | None:
    """The names of a list; None for `*` and for no list."""
    names = frozenset(name.strip() for name in (text or EVERYONE).split(",") if name.strip())
    return None if EVERYONE in names else names
