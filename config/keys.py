"""The settings as flat keys: `api.port` with its field, its variable and the values it accepts."""

import functools
import re
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from callslip.config.sections.section import Section
from callslip.config.settings import FurtherEmbedderSettings, Settings

PREFIX = "CALLSLIP_"

FAMILIES: dict[str, type[Section]] = {"embedders": FurtherEmbedderSettings}
"""Sections of which there may be several, each under a name: `embedders.bge.model`."""

NAME_IN_FAMILY = r"[a-z0-9]+(?:[-_][a-z0-9]+)*"
"""Such a name; a variable, whose case does not count and in which `__` parts, can have it too."""


@dataclass(frozen=True)
class Stated:
    """A value from a source, None for an empty one, and its location in the source."""

    text: str | None
    origin: str


def variable(key: str) -> str:
    """The environment variable of a key: `api.port` is CALLSLIP_API__PORT."""
    return PREFIX + key.replace(".", "__").upper()


def key_of(name: str) -> str:
    """The key that a variable would set; the inverse of `variable`."""
    return name[len(PREFIX) :].replace("__", ".").lower()


def did_you_mean(key: str, known: Iterable[str], spelled: Callable[[str], str] = str) -> str:
    """Return `; did you mean api.port?`, or an empty string if no known key is similar."""
    near = get_close_matches(key, list(known), n=1)
    return f"; did you mean {spelled(near[0])}?" if near else ""


def is_secret(field: FieldInfo) -> bool:
    """Whether the field's value must never be shown."""
    return SecretStr in (field.annotation, *get_args(field.annotation))


def accepts(field: FieldInfo) -> str:
    """Describe the accepted values in words: `a whole number from 0 to 65535`."""
    options = [t for t in _alternatives(field.annotation) if t is not type(None)]
    words = " or ".join(_word(option) for option in options) + _bounds(field.metadata)
    return words + ", or nothing" if type(None) in _alternatives(field.annotation) else words


def _alternatives(annotation: object) -> tuple[object, ...]:
    union = get_origin(annotation) in (Union, types.UnionType)
    return get_args(annotation) if union else (annotation,)


def _word(annotation: object) -> str:
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(map(str, get_args(annotation)))
    return _WORDS[annotation]


_WORDS: dict[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    SecretStr: "text",
    Path: "a path",
}


def _bounds(metadata: Sequence[object]) -> str:
    words = ""
    for bound in metadata:
        match bound:
            case Ge(ge=low):
                words += f" from {low}"
            case Gt(gt=low):
                words += f" above {low}"
            case Le(le=high):
                words += f" to {high}"
            case Lt(lt=high):
                words += f" below {high}"
    return words if " to " in words or " below " in words else words.replace("from", "at least")


def _walk(model: type[Section], prefix: str = "") -> dict[str, FieldInfo]:
    keys: dict[str, FieldInfo] = {}
    for name, field in model.model_fields.items():
        if prefix + name in FAMILIES:
            continue
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            keys |= _walk(field.annotation, f"{prefix}{name}.")
        else:
            keys[prefix + name] = field
    return keys


KEYS: dict[str, FieldInfo] = _walk(Settings)
"""Every setting by its dotted key, in the order of the model; families have further ones."""

SECTIONS = frozenset(key.rpartition(".")[0] for key in KEYS if "." in key)
"""The keys of sections: `api`, `search` …"""


def field_of(key: str) -> FieldInfo | None:
    """The field of a key, also in a family; None if there is no such setting."""
    if key in KEYS:
        return KEYS[key]
    section, _, name = key.rpartition(".")
    family = section.partition(".")[0]
    return FAMILIES[family].model_fields.get(name) if in_family(section) else None


def in_family(key: str) -> bool:
    """Whether it is the key of a section in a family: `embedders.bge`."""
    family, _, name = key.partition(".")
    return family in FAMILIES and re.fullmatch(NAME_IN_FAMILY, name) is not None


def values(settings: Settings) -> dict[str, Any]:
    """The value of every setting by its key, those of families last."""
    by_key = {key: functools.reduce(getattr, key.split("."), settings) for key in KEYS}
    for family in FAMILIES:
        for name, section in getattr(settings, family).items():
            by_key |= {f"{family}.{name}.{field}": value for field, value in section}
    return by_key
