"""The HTTP server, the queue, the ledger, the blob store and the log of an installation."""

import re
from pathlib import Path
from typing import Literal, cast, get_args
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from callslip.config.sections.section import Section

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""Names of addresses that only this machine reaches."""
Level = Literal["DEBUG", "INFO", "WARNING", "ERROR"]

SENTINEL = "sentinel"
BROKER_SCHEMES = ("redis", "rediss", "unix", SENTINEL)

SENTINEL_PORT = 26379
"""The port of a Sentinel whose address has none."""

LOG_PARTS = (
    *("api", "ingest", "search", "answer", "maintenance", "annotator"),
    *("keyword", "chroma", "valkey"),
)
"""The parts whose log level `log.levels` may name."""


class ApiSettings(Section):
    """The HTTP server."""

    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="address to listen on; loopback by default",
    )
    port: int = Field(default=8765, ge=0, le=65535, description="port to listen on; 0: a free one")
    url: str | None = Field(
        default=None, description="address of the server for clients; from host and port if unset"
    )
    key: SecretStr | None = Field(
        default=None,
        description="a key with every permission, besides those of `callslip keys`; without any"
        " key the first start makes one",
    )
    open: bool = Field(
        default=False, description="ask for no key, whatever keys there are; on loopback alone"
    )
    processes: int = Field(default=2, ge=1, description="gunicorn worker processes")
    threads: int = Field(default=4, ge=1, description="threads per process")
    streams: int = Field(
        default=4,
        ge=0,
        description="open event streams per process, each in an additional thread",
    )
    answers: int = Field(
        default=4,
        ge=0,
        description="questions to the agent per process that wait for an answer, each in an"
        " additional thread",
    )
    max_upload_mb: int = Field(
        default=100, ge=1, description="the largest file, in MB of 1,000,000 bytes"
    )

    hosts: str | None = Field(
        default=None,
        description="names under which clients call the server, such as `docs.example.org`, with"
        " commas between them; the server also accepts loopback names, the host of api.url and,"
        " if api.host is not loopback, addresses, and refuses every other name",
    )
    connections: int = Field(
        default=1000,
        ge=10,
        description="open connections per process; then a new one closes the slowest ones",
    )
    header_seconds: float = Field(
        default=10.0, gt=0, description="time for the headers of a request to arrive"
    )
    stall_seconds: float = Field(
        default=10.0,
        gt=0,
        description="period in which a body must arrive, or a response be read, at api.min_rate",
    )
    min_rate: int = Field(
        default=5000,
        ge=1,
        description="bytes per second of the slowest body, and of the slowest reader",
    )
    keep_alive_seconds: int = Field(
        default=5, ge=0, description="time for which an idle connection stays open; 0: none does"
    )

    drain_seconds: float = Field(
        default=0.0,
        ge=0,
        description="time for which a server that is to stop still serves, while /readyz answers"
        " 503: as long as a load balancer takes to notice",
    )

    @model_validator(mode="after")
    def _open_on_loopback_alone(self) -> "ApiSettings":
        if self.open and (self.host not in LOOPBACK or self.key is not None):
            raise ValueError("api.open is for a server on loopback without api.key")
        return self

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
        description="Redis or Valkey: `redis://`, `rediss://` (TLS), `unix:///PATH`, or its"
        " Sentinels, `sentinel://HOST:26379;sentinel://HOST2:26379`, where the first address may"
        " have user, password and database of the master; unset: `callslip up` starts Valkey in"
        " data_dir",
    )
    master_name: str | None = Field(
        default=None, description="name of the master that the Sentinels of broker.url watch"
    )
    sentinel_password: SecretStr | None = Field(
        default=None, description="password of the Sentinels themselves, if they have one"
    )

    @field_validator("url")
    @classmethod
    def _is_redis(cls, url: str | None) -> str | None:
        if url is None:
            return None
        scheme, separator, _ = url.partition("://")
        if not separator or scheme not in BROKER_SCHEMES:
            raise ValueError(
                f"{scheme + separator if separator else 'an address without a scheme'} is not"
                " supported, because locks, replies and counters are in the broker too: use Redis"
                " or Valkey (redis://, rediss://, unix:// or sentinel://)"
            )
        if scheme == SENTINEL:
            if not all(_is_sentinel(address) for address in _addresses(url)):
                raise ValueError(
                    "expected sentinel://HOST:PORT for each Sentinel, `;` between them"
                )
        elif ";" in url:
            raise ValueError("only sentinel:// has several addresses; a `;` in a password is %3B")
        return url

    @model_validator(mode="after")
    def _sentinels_watch_a_master(self) -> "BrokerSettings":
        if self.sentinels and not self.master_name:
            raise ValueError("sentinel:// needs broker.master_name, the master that they watch")
        return self

    @property
    def sentinels(self) -> list[SplitResult]:
        """The addresses of the Sentinels; empty if the URL names the broker itself."""
        url = self.url or ""
        return _addresses(url) if url.startswith(f"{SENTINEL}://") else []


def _addresses(url: str) -> list[SplitResult]:
    return [urlsplit(address) for address in url.split(";")]


def _is_sentinel(address: SplitResult) -> bool:
    try:
        named = address.scheme == SENTINEL and address.hostname and address.port != 0
    except ValueError:  # the port is no number
        return False
    database = address.path.removeprefix("/")
    return bool(named) and (not database or database.isdigit())


class LedgerSettings(Section):
    """The SQL database that owns the state of every document."""

    url: str | None = Field(default=None, description="SQLAlchemy URL; unset: SQLite in data_dir")


class BlobSettings(Section):
    """Originals and artifacts of steps."""

    url: str | None = Field(
        default=None, description="fsspec URL such as s3://bucket/prefix; unset: data_dir"
    )
    endpoint: str | None = Field(
        default=None,
        description="web address of a server that speaks S3, such as MinIO, for an s3:// URL;"
        " unset: AWS_ENDPOINT_URL_S3, or Amazon's",
    )

    @model_validator(mode="after")
    def _endpoint_of_a_bucket(self) -> "BlobSettings":
        if self.endpoint is not None and not (self.url or "").startswith(("s3://", "s3a://")):
            raise ValueError("blobs.endpoint is for a blobs.url that begins with s3://")
        return self

    @field_validator("endpoint")
    @classmethod
    def _is_a_web_address(cls, url: str | None) -> str | None:
        if url is not None and not re.fullmatch(r"https?://[^\s/@]+/?", url):
            raise ValueError("must be http:// or https:// and a host, without a user")
        return url


class LogSettings(Section):
    """The log of the processes, which never contains text of a document."""

    level: Level = Field(default="INFO", description="the least severe messages in the log")
    levels: str | None = Field(
        default=None,
        description="levels of single parts, such as `api=WARNING chroma=INFO`; the parts are api,"
        " ingest, search, answer, maintenance, annotator, keyword, chroma (WARNING by default),"
        " valkey",
    )
    format: Literal["text", "json"] = Field(
        default="text", description="lines of text, or one JSON object per line"
    )
    file: Path | None = Field(
        default=None,
        description="file of this process's log, which another program may rename; unset: standard"
        " error. `callslip up` gives each part its own",
    )

    @field_validator("levels")
    @classmethod
    def _names_parts_and_levels(cls, text: str | None) -> str | None:
        for part, _, level in _pairs(text):
            if part not in LOG_PARTS or level not in get_args(Level):
                raise ValueError(
                    f"{part}={level} is no PART=LEVEL; parts are {', '.join(LOG_PARTS)};"
                    f" levels are {', '.join(get_args(Level))}"
                )
        return text

    def level_of(self, part: str) -> Level:
        """The level of a part."""
        default: Level = "WARNING" if part == "chroma" else self.level
        named = {name: level for name, _, level in _pairs(self.levels)}
        return cast(Level, named.get(part, default))


def _pairs(text: str | None) -> list[tuple[str, str, str]]:
    return [word.partition("=") for word in (text or "").replace(",", " ").split()]
