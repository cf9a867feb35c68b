"""The `meta.yaml` of an invoker: Weaviate's address, and defaults for a request's parameters."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from callslip.config.settings import WeaviateSettings
from callslip.errors import InvalidRequest, SettingsError

SECTIONS = ("parameters", "query", "persist", "delete")
"""Sections that contain parameters; the last three are the names in the published package."""

CONFIGURABLE = (
    *("collection", "tenant", "vector_name", "include_vector", "method", "parent_strategy", "top"),
    *("horizon", "operation_level", "having_all", "having_any"),
    *("batch_size", "properties", "multi_tenancy", "named_vectors"),
)
"""The parameters that a file may set.

The last three concern new collections; no invoker makes collections.
"""

RENAMED = {
    "collection_name": "collection",
    "tenant_name": "tenant",
    "named_vector": "vector_name",
}

VARIABLE = "WEAVIATE_"
"""The prefix of an environment variable that overrides a setting of the file.

The setting's name in upper case follows the prefix.
"""


class Connection(BaseModel):
    """The section `connection`."""

    model_config = ConfigDict(extra="forbid")

    http_host: str | None = None
    http_port: int = Field(8080, ge=1, le=65535)
    http_secure: bool = False
    grpc_host: str | None = None
    grpc_port: int = Field(50051, ge=1, le=65535)
    grpc_secure: bool = False
    api_key: SecretStr | None = None

    def settings(self, usual: WeaviateSettings) -> WeaviateSettings:
        """Return Weaviate's settings with this address; unchanged if the section names no host."""
        if self.http_host is None:
            return usual
        grpc_host = self.grpc_host or self.http_host
        return usual.model_copy(
            update={
                "url": _url(self.http_host, self.http_port, secure=self.http_secure),
                "grpc_url": _url(grpc_host, self.grpc_port, secure=self.grpc_secure),
                "api_key": self.api_key or usual.api_key,
            }
        )


@dataclass(frozen=True)
class Configured:
    """The settings of a `meta.yaml` and the environment; parameters have their names in the API."""

    connection: Connection = field(default_factory=lambda: Connection.model_validate({}))
    parameters: Mapping[str, Any] = field(default_factory=dict)


def configured(source: Mapping[str, Any] | str | Path) -> Configured:
    """Read a configuration or a file with one.

    Raises SettingsError, which names the faults, for an unreadable or invalid configuration, and
    InvalidRequest if two names set one parameter to different values.
    """
    config = source if isinstance(source, Mapping) else _read(Path(source))
    parameters: dict[str, Any] = {}
    for name in SECTIONS:
        parameters |= renamed(_section(config, name))
    connection = _section(config, "connection")
    fields = {name: os.environ.get(VARIABLE + name.upper()) for name in Connection.model_fields}
    fields = connection | {name: value for name, value in fields.items() if value}
    try:
        return Configured(Connection.model_validate(fields), parameters)
    except ValidationError as error:
        wrong = "; ".join(f"{e['loc'][0]}: {e['msg']}" for e in error.errors(include_input=False))
        raise SettingsError(f"connection of the invoker: {wrong}") from None


def renamed(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters by their names in the API.

    Raises InvalidRequest if two names set one parameter to different values.
    """
    by_api_name: dict[str, Any] = {}
    for name, value in parameters.items():
        name = RENAMED.get(name, name)
        if by_api_name.get(name) is not None and value is not None and by_api_name[name] != value:
            raise InvalidRequest(f"{name} is given twice, by two names")
        by_api_name[name] = by_api_name.get(name) if value is None else value
    return by_api_name


def checked_parameters(parameters: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return the parameters that are not null, by API name.

    Raises InvalidRequest for an unknown name. `known` are the accepted names.
    """
    by_api_name = renamed(parameters)
    for name in by_api_name:
        if name not in known:
            raise InvalidRequest(
                f"there is no parameter {name!r}", hint=f"There are: {', '.join(known)}."
            )
    return {name: value for name, value in by_api_name.items() if value is not None}


def usual(parameters: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return the configured parameters that an invoker accepts (`known`).

    A file may also contain parameters of other invokers.
    """
    configured = checked_parameters(parameters, CONFIGURABLE)
    return {name: value for name, value in configured.items() if name in known}


def _section(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = config.get(name)
    if section is None:
        return {}
    if not isinstance(section, Mapping) or not all(isinstance(key, str) for key in section):
        raise SettingsError(f"{name} of the invoker is not a section of names and values")
    return dict(section)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, yaml.YAMLError):
        raise SettingsError(f"{path} is not YAML in UTF-8") from None
    if not isinstance(config, Mapping):
        raise SettingsError(f"{path} holds no sections")
    return config


def _url(host: str, port: int, *, secure: bool) -> str:
    name = host.removeprefix("https://").removeprefix("http://").rstrip("/")
    return f"{'https' if secure else 'http'}://{name}:{port}"
