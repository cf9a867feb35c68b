"""JSON and JSON lines: a section for each record, by the field mapping of the settings."""

import json
from collections.abc import Iterator
from typing import Any

from callslip.config.settings import ExtractSettings
from callslip.errors import BrokenFile
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.decode import decode
from callslip.ingestion.extract.sniff import JSON
from callslip.ingestion.left_out import read_otherwise
from callslip.ingestion.values import ExtractedText


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read a value, a list of records or a record on each line.

    A line that is not JSON stays as text, with a warning. Raises BrokenFile if nothing is JSON.
    """
    decoded = decode(data)
    records, wrong = _records(decoded.text)
    titles, texts = _fields(limits.json_title), _fields(limits.json_text)
    composer = Composer(limits)
    single = len(records) == 1
    first: str | None = None
    for record in records:
        name = next((field for field in titles if _at(record, field)), None)
        title = _text_of(_at(record, name)) if name else ""
        first = first or title
        composer.heading(title, 1)
        if texts and isinstance(record, dict):
            lines = [_text_of(value) for f in texts if (value := _at(record, f)) is not None]
        else:
            lines = [line for path, line in _leaves(record) if path != name]
        composer.paragraph("\n".join(lines))
    properties = {}
    if single:
        chosen = {name: _at(records[0], name) for name in _fields(limits.json_properties)}
        properties = {name: _text_of(value) for name, value in chosen.items() if value is not None}
    warnings = decoded.warnings
    if wrong:
        warnings += (read_otherwise("as plain text", {"lines that are no JSON": wrong}),)
    return composer.text(JSON, first if single else None, properties=properties, warnings=warnings)


def _records(text: str) -> tuple[list[Any], int]:
    """Return the records, and the number of lines that are not JSON."""
    try:
        loaded = json.loads(text, parse_int=_integer)
        return (loaded if isinstance(loaded, list) else [loaded]), 0
    except ValueError:
        pass
    records, wrong = [], 0
    for line in filter(None, map(str.strip, text.split("\n"))):
        try:
            records.append(json.loads(line, parse_int=_integer))
        except ValueError:
            records.append(line)
            wrong += 1
    if wrong == len(records):
        raise BrokenFile("neither the whole file nor any line of it is JSON")
    return records, wrong


def _integer(digits: str) -> int | str:
    """The number, or its digits if there are more than Python converts (4,300)."""
    try:
        return int(digits)
    except ValueError:
        return digits


def _fields(setting: str | None) -> list[str]:
    return [name.strip() for name in (setting or "").split(",") if name.strip()]


def _at(record: Any, field: str) -> Any:
    """Return the value of a field, or None; `a.b` is b within a."""
    if isinstance(record, dict) and field in record:
        return record[field]
    for name in field.split("."):
        record = record.get(name) if isinstance(record, dict) else None
    return record


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list) and all(isinstance(v, (str, int, float)) for v in value):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path of each value that is not empty, and the line `path: value`."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and any(isinstance(v, (dict, list)) for v in value):
        for inner in value:
            yield from _leaves(inner, path)
    elif value not in (None, "", []):
        yield path, f"{path}: {_text_of(value)}" if path else _text_of(value)
