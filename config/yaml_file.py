"""Reads the YAML file of settings into flat keys with line numbers."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from callslip.config.keys import (
    FAMILIES,
    KEYS,
    SECTIONS,
    Stated,
    accepts,
    did_you_mean,
    field_of,
    in_family,
)
from callslip.errors import SettingsError

NULL = "tag:yaml.org,2002:null"


def read(path: Path) -> dict[str, Stated]:
    """Read the settings in a file, each with `FILE:LINE` as its origin.

    Values remain text as in the file, so that `port: yes` means the same in YAML and in the
    environment. Raises SettingsError with file and line.
    """
    stated: dict[str, Stated] = {}
    seen: dict[str, str] = {}
    problems: list[str] = []
    for key, value, where in _entries(_compose(path), "", path):
        if key in seen:
            problems.append(f"{key} is set twice, in {seen[key]} and in {where}")
        elif _is_section(key):
            if not isinstance(value, yaml.MappingNode) and not _is_null(value):
                problems.append(f"{key} in {where} holds settings of its own, as `key: value`")
        elif (field := field_of(key)) is None:
            hint = did_you_mean(key, [*KEYS, *SECTIONS])
            if key.rpartition(".")[0] in FAMILIES:
                hint = ": a name has lower-case letters, digits, and `-` or `_` in between"
            problems.append(f"unknown setting {key} in {where}{hint}")
        elif not isinstance(value, yaml.ScalarNode):
            kind = "a list" if isinstance(value, yaml.SequenceNode) else "settings below it"
            problems.append(f"{key} in {where}: expected {accepts(field)}, got {kind}")
        else:
            stated[key] = Stated(None if _is_null(value) else value.value or None, where)
        seen.setdefault(key, where)
    if problems:
        raise SettingsError("\n".join(problems))
    return stated


def _compose(path: Path) -> yaml.Node | None:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"cannot read the settings in {path}: {error.strerror}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path}:{line}: this is not UTF-8 text") from None
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise SettingsError(f"{where}: this is not YAML: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SettingsError(f"{path}:{line}: this is not YAML: {error.reason}") from None


def _entries(
    node: yaml.Node | None, prefix: str, path: Path
) -> Iterator[tuple[str, yaml.Node, str]]:
    """Key, value and location of every entry; the entries of a section follow it directly."""
    if node is None or _is_null(node):
        return
    if not isinstance(node, yaml.MappingNode):
        raise SettingsError(f"{_at(path, node)}: settings are written as `key: value`")
    for name, value in node.value:
        where = _at(path, name)
        if not isinstance(name, yaml.ScalarNode):
            raise SettingsError(f"{where}: the name of a setting is one word")
        key = prefix + name.value
        yield key, value, where
        if _is_section(key) and isinstance(value, yaml.MappingNode):
            yield from _entries(value, key + ".", path)


def _is_section(key: str) -> bool:
    return key in SECTIONS or key in FAMILIES or in_family(key)


def _is_null(node: yaml.Node) -> bool:
    return node.tag == NULL


def _at(path: Path, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"
