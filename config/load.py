"""Loads the settings from the defaults, then a YAML file, then the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from callslip.config import yaml_file
from callslip.config.keys import (
    KEYS,
    PREFIX,
    Stated,
    accepts,
    did_you_mean,
    field_of,
    key_of,
    values,
    variable,
)
from callslip.config.masking import shown
from callslip.config.sections import annotator, faq, models, stores
from callslip.config.settings import Settings
from callslip.errors import SettingsError

FILE = "callslip.yaml"
FILE_VARIABLE = "CALLSLIP_CONFIG"
KNOWN_ELSEWHERE = annotator.VARIABLES | faq.VARIABLES | models.VARIABLES | stores.VARIABLES
"""Variables with the names of other systems, each with its setting."""

TEST_PREFIX = "CALLSLIP_TEST_"
"""Variables of the test suite; they are not settings."""

VALUE_FILE = "_FILE"
"""The end of a variable that names a file with the value, such as a secret of a container."""

MOST_BYTES = 65_536
"""The greatest length of such a file."""


class _InForce(Settings, BaseSettings):
    """The settings from their sources: environment variables override the constructor's values."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", env_parse_none_str=""
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        if isinstance(env_settings, EnvSettingsSource):
            variables = env_settings.env_vars.items()
            env_settings.env_vars = {n: v for n, v in variables if not _key_of_file(n.upper())}
        return env_settings, init_settings


@dataclass(frozen=True)
class Loaded:
    """The current settings, and the origin of each dotted key's value.

    An origin is `default`, the file with its line (`callslip.yaml:3`) or the variable's name.
    """

    settings: Settings
    origins: dict[str, str]


def load(folder: Path = Path()) -> Loaded:
    """Read the file CALLSLIP_CONFIG, or else callslip.yaml in `folder`, and the variables.

    A variable overrides the same one with `_FILE`, and this one overrides the file of settings.

    Raises SettingsError with the location and the expected value of every wrong setting.
    """
    in_file = _from_file(folder) | _known_elsewhere() | _from_value_files()
    stated = in_file | _from_environment()
    settings = _validated(in_file, stated)
    origins = {k: stated[k].origin if k in stated else "default" for k in values(settings)}
    return Loaded(settings, origins)


@cache
def get_settings() -> Settings:
    """Return the current settings of this process, which are read once."""
    return load().settings


def environment(overrides: Mapping[str, object]) -> dict[str, str]:
    """Convert dotted keys to environment variables for a child process; None unsets a key.

    Raises SettingsError for an unknown key.
    """
    for key in overrides:
        if field_of(key) is None:
            raise SettingsError(f"unknown setting {key}" + did_you_mean(key, KEYS))
    return {variable(key): _rendered(value) for key, value in overrides.items()}


def is_of_settings(name: str) -> bool:
    """Whether a variable is a setting, or names a file of settings."""
    return name.upper().startswith(PREFIX) and not name.startswith(TEST_PREFIX)


def _from_file(folder: Path) -> dict[str, Stated]:
    if named := os.environ.get(FILE_VARIABLE):
        if not Path(named).is_file():
            raise SettingsError(f"{FILE_VARIABLE} names {named}, and there is no such file")
        return yaml_file.read(Path(named))
    path = folder / FILE
    return yaml_file.read(path) if path.is_file() else {}


def _known_elsewhere() -> dict[str, Stated]:
    """The non-empty variables with the names of other systems, by key."""
    return {
        key: Stated(os.environ[name], name)
        for name, key in KNOWN_ELSEWHERE.items()
        if os.environ.get(name)
    }


def _from_environment() -> dict[str, Stated]:
    """Read the variables for error messages; raise SettingsError for an unknown variable."""
    stated: dict[str, Stated] = {}
    problems = []
    for name, text in os.environ.items():
        if not is_of_settings(name) or name == FILE_VARIABLE:
            continue
        key = key_of(name)
        if field_of(key) and name == variable(key):
            stated[key] = Stated(text or None, name)
        elif _key_of_file(name) is None:
            problems.append(f"unknown variable {name}{did_you_mean(key, KEYS, variable)}")
    if problems:
        raise SettingsError("\n".join(problems))
    return stated


def _from_value_files() -> dict[str, Stated]:
    """Read the values of variables such as CALLSLIP_LEDGER__URL_FILE from the files they name.

    Raises SettingsError for a file that cannot be read.
    """
    stated, problems = {}, []
    for name, path in os.environ.items():
        key = _key_of_file(name)
        if key is None:
            continue
        try:
            with Path(path).open("rb") as file:
                content = file.read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES:
                problems.append(f"{name} names {path}, which has more than {MOST_BYTES} bytes")
            stated[key] = Stated(content.decode().rstrip("\r\n") or None, f"{name} ({path})")
        except OSError as error:
            problems.append(f"{name} names {path}, which cannot be read: {error.strerror}")
        except UnicodeDecodeError:
            problems.append(f"{name} names {path}, which is not UTF-8 text")
    if problems:
        raise SettingsError("\n".join(problems))
    return stated


def _key_of_file(name: str) -> str | None:
    """The key whose value is in the file that this variable names; None if it names no such file.

    `CALLSLIP_RERANK__ONNX_FILE` is a setting itself.
    """
    if not name.startswith(PREFIX) or not name.endswith(VALUE_FILE):
        return None
    key = key_of(name.removesuffix(VALUE_FILE))
    own = field_of(key_of(name)) or name.removesuffix(VALUE_FILE) != variable(key)
    return None if own or field_of(key) is None else key


def _validated(in_file: Mapping[str, Stated], stated: Mapping[str, Stated]) -> Settings:
    nested: dict[str, Any] = {}
    for key, value in in_file.items():
        *sections, name = key.split(".")
        section = nested
        for part in sections:
            section = section.setdefault(part, {})
        section[name] = value.text
    try:
        return _InForce(**nested)
    except ValidationError as error:
        problems = [
            _problem(".".join(map(str, e["loc"])), e["msg"], e["type"] == "value_error", stated)
            for e in error.errors(include_url=False, include_input=False)
        ]
    # Raised out here because pydantic's own error quotes the values, secrets too.
    raise SettingsError("\n".join(problems))


def _problem(key: str, message: str, ours: bool, stated: Mapping[str, Stated]) -> str:
    """The sentence for a wrong value; `ours` if a validator of the settings wrote the message."""
    message = message.removeprefix("Value error, ")
    field = field_of(key)
    if field is None or key not in stated:
        origins = ", ".join(v.origin for k, v in stated.items() if k.startswith(f"{key}."))
        return f"{key} in {origins}: {message}"
    if ours:
        return f"{key} in {stated[key].origin}: {message}"
    value = stated[key]
    got = "nothing" if value.text is None else shown(key, value.text)
    return f"{key} in {value.origin}: expected {accepts(field)}, got {got}"


def _rendered(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return "" if value is None else str(value)
