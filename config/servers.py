"""The HTTP server, the queue, the ledger, the blob store and the log of an installation."""

import re
from typing import Literal

from pydantic import Field, SecretStr, field_validator

from callslip.config.section import Section


class ApiSettings(Section):
    """The HTTP server."""

    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="address to listen on; loopback by default",
    )
    port: int = Field(default=8765, ge=0, le=65535, description="0 takes a free port")
    url: str | None = Field(
        default=None, description="address of the server for clients; from host and port if unset"
    )
    key: SecretStr | None = Field(
        default=None,
        description="key that every request except health probes must carry; unset: none",
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
        description="Redis or Valkey URL; unset: `callslip up` starts Valkey in data_dir",
    )


class LedgerSettings(Section):
    """The SQL database that owns the state of every document."""

    url: str | None = Field(default=None, description="SQLAlchemy URL; unset: SQLite in data_dir")


class BlobSettings(Section):
    """Originals and artifacts of steps."""

    url: str | None = Field(
        default=None, description="fsspec URL such as s3://bucket/prefix; unset: data_dir"
    )


class LogSettings(Section):
    """The log of the processes, which never contains text of a document."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="the least severe messages in the log"
    )
