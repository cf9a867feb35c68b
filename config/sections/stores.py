"""The servers and files of the stores."""

import re
from pathlib import Path

from pydantic import Field, SecretStr, field_validator, model_validator

from callslip.config.sections.section import Calling, Section

VARIABLES = {"WEAVIATE_ENDPOINT": "weaviate.url", "WEAVIATE_API_KEY": "weaviate.api_key"}
"""Variables of the Weaviate stack, each with its setting; Callslip's own variables override
them."""


class ChromaSettings(Calling):
    """A Chroma server, and the keyword index for it; the servers of attached collections."""

    url: str | None = Field(
        default=None, description="URL of a server; unset: `callslip up` starts one in data_dir"
    )
    tenant: SecretStr | None = Field(
        default=None,
        description="tenant of the server at chroma.url; a name that nobody guesses is its"
        " password; unset: Chroma's default tenant",
    )
    index_dir: Path | None = Field(
        default=None, description="folder of the keyword index; unset: in data_dir"
    )
    allow_networks: str | None = Field(
        default="127.0.0.0/8, ::1",
        description="internal networks in which the servers of attached collections may be; public"
        " addresses are always allowed",
    )
    attached_keys: SecretStr | None = Field(
        default=None,
        description="keys of the servers of attached collections, each `URL=KEY`, with spaces"
        " between them",
    )

    @field_validator("attached_keys")
    @classmethod
    def _has_addresses_and_keys(cls, keys: SecretStr | None) -> SecretStr | None:
        for pair in keys.get_secret_value().split() if keys else ():
            if not re.fullmatch(r"https?://[^\s=]+=[!-~]+", pair):
                raise ValueError("expected URL=KEY, with spaces between several")
        return keys

    def attached_key(self, url: str) -> str | None:
        """The key of the server at this address."""
        pairs = self.attached_keys.get_secret_value().split() if self.attached_keys else ()
        keys = {at.rstrip("/"): key for at, _, key in (pair.partition("=") for pair in pairs)}
        return keys.get(url.rstrip("/"))


class KeywordSettings(Section):
    """The service of the keyword index beside Chroma, for parts on several machines."""

    url: str | None = Field(
        default=None,
        pattern=r"^https?://[^/\s]+/?$",
        description="address of `callslip run keyword`, such as http://10.0.0.5:8766; unset: each"
        " part opens the folder chroma.index_dir itself",
    )
    key: SecretStr | None = Field(
        default=None, description="secret of the service and of its clients, 16 or more characters"
    )
    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="address on which the service listens; loopback by default",
    )
    port: int = Field(default=8766, ge=1, le=65535, description="port of the service")
    threads: int = Field(default=8, ge=1, description="threads of the service")
    timeout_seconds: float = Field(
        default=60.0,
        gt=0,
        description="the longest time of a call that has no deadline of its own",
    )

    @field_validator("key")
    @classmethod
    def _fits_a_header(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and not re.fullmatch(r"[!-~]{16,}", key.get_secret_value()):
            raise ValueError("must be 16 or more characters of ASCII, without spaces")
        return key

    @model_validator(mode="after")
    def _a_client_has_the_key(self) -> "KeywordSettings":
        if self.url is not None and self.key is None:
            raise ValueError("keyword.url needs keyword.key, the secret of the service")
        return self


class WeaviateSettings(Section):
    """A Weaviate server, for the collections in the store `weaviate`."""

    url: str | None = Field(
        default=None,
        description="URL of the HTTP interface, such as http://127.0.0.1:8080; WEAVIATE_ENDPOINT",
    )
    grpc_url: str | None = Field(
        default=None, description="URL of the gRPC interface; unset: port 50051 of the same host"
    )
    api_key: SecretStr | None = Field(
        default=None, description="API key, if the server requires one; WEAVIATE_API_KEY"
    )
    timeout_seconds: float = Field(default=60.0, gt=0, description="the longest time of one call")


class CrateSettings(Section):
    """A CrateDB cluster, for the collections in the store `crate`."""

    url: str | None = Field(
        default=None, description="URL of the HTTP interface, such as http://127.0.0.1:4200"
    )
    user: str = Field(default="crate", description="user name")
    password: SecretStr | None = Field(
        default=None, description="password, if the cluster requires one"
    )
    schema_name: str = Field(
        default="callslip",
        pattern=r"^[a-z][a-z0-9_]{0,40}$",
        description="schema of the tables",
    )
    shards: int = Field(
        default=1, ge=1, description="shards of a new table; more than one for several machines"
    )
    replicas: str = Field(
        default="0-1", pattern=r"^[0-9]+(-([0-9]+|all))?$", description="replicas of a new table"
    )
    timeout_seconds: float = Field(default=60.0, gt=0, description="the longest time of one call")


class TfidfSettings(Section):
    """The TF-IDF store: files and numpy, no server."""

    folder: Path | None = Field(default=None, description="folder of the store; unset: in data_dir")
