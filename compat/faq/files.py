"""Reading files of an FAQ: JSON, JSON lines, or CSV, in UTF-8."""

import csv
import io
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from callslip.compat.errors import faults
from callslip.compat.faq.rows import FIELDS, Row, twice
from callslip.errors import InvalidRequest

MOST_FAULTS = 10
"""The most errors that are reported for one file."""

DELIMITERS = ",;\t"

ENDINGS = {
    ".json": "json",
    ".jsonl": "lines",
    ".ndjson": "lines",
    ".csv": "csv",
    ".tsv": "csv",
}

FORM = (
    "An FAQ is a JSON array of objects, such an object on each line, or CSV with a header; each"
    " row has `question` and `answer`, and an `id`; without one it is known by its question."
)


@dataclass(frozen=True)
class FaqFile:
    """The rows of a file; `passed_over` are the names of unknown fields, which are ignored."""

    rows: tuple[Row, ...]
    passed_over: tuple[str, ...]


LocatedRow = tuple[str, Mapping[str, Any]]
"""The location of a row, such as `line 3`, and its fields before validation."""


def read(path: Path) -> FaqFile:
    """Read the rows of a file.

    Raises InvalidRequest, which names the wrong rows and fields, at most `MOST_FAULTS`.
    """
    form = ENDINGS.get(path.suffix.lower())
    if form is None:
        raise InvalidRequest(
            f"{path.name} is no FAQ by its name",
            hint=f"Name it {', '.join(ENDINGS)}. {FORM}",
        )
    text = _text(path)
    readers = {"json": _json, "lines": _lines, "csv": _csv}
    located = list(readers[form](path.name, text))
    if not located:
        raise InvalidRequest(f"{path.name} holds no row", hint=FORM)
    return _checked(path.name, located)


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"cannot read {path}: {error.strerror}") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidRequest(
            f"{path.name} is not UTF-8: line {line}", hint="Save it as UTF-8 and try again."
        ) from None


def _json(name: str, text: str) -> Iterator[LocatedRow]:
    try:
        value = json.loads(text)
    except RecursionError:
        raise InvalidRequest(f"{name} is nested too deeply", hint=FORM) from None
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        if isinstance(error, json.JSONDecodeError) and error.msg == "Extra data":
            yield from _lines(name, text)
            return
        raise InvalidRequest(f"{name} is not JSON: line {line}", hint=FORM) from None
    if isinstance(value, dict):
        lists = [inner for inner in value.values() if isinstance(inner, list)]
        value = lists[0] if len(lists) == 1 and "question" not in value else [value]
    if not isinstance(value, list):
        raise InvalidRequest(f"{name} is no array of objects", hint=FORM)
    for number, row in enumerate(value, 1):
        yield f"row {number}", _object(name, f"row {number}", row)


def _lines(name: str, text: str) -> Iterator[LocatedRow]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise InvalidRequest(f"{name}, line {number}: is not JSON", hint=FORM) from None
        yield f"line {number}", _object(name, f"line {number}", value)


def _object(name: str, where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequest(f"{name}, {where}: is no object", hint=FORM)
    return value


def _csv(name: str, text: str) -> Iterator[LocatedRow]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    header: list[str] = []
    before = 0
    try:
        for cells in rows:
            where, before = f"line {before + 1}", rows.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = _header(name, cells)
                continue
            if len(cells) > len(header):
                raise InvalidRequest(
                    f"{name}, {where}: has {len(cells)} cells, the header {len(header)}",
                    hint="Put double quotes around a text that holds the delimiter.",
                )
            fields: dict[str, Any] = dict(zip(header, cells, strict=False))
            fields["id"] = fields.get("id", "").strip() or None
            yield where, fields
    except csv.Error as error:
        raise InvalidRequest(f"{name}, line {rows.line_num}: is no CSV: {error}") from None


def _delimiter(text: str) -> str:
    head = text.lstrip("\r\n").split("\n", 1)[0]
    return max(DELIMITERS, key=head.count)


def _header(name: str, cells: list[str]) -> list[str]:
    header = [cell.strip().lower() for cell in cells]
    for field in FIELDS:
        count = header.count(field)
        if count > 1 or (not count and field != "id"):
            wrong = f"has {field} twice" if count else f"lacks {field}"
            raise InvalidRequest(f"{name}, line 1: the header {wrong}", hint=FORM)
    return header


def _checked(name: str, located: list[LocatedRow]) -> FaqFile:
    rows: dict[int, Row] = {}
    wrong: list[tuple[int, str]] = []
    ids: dict[int, int | str] = {}
    others: dict[str, None] = {}
    for at, (_, fields) in enumerate(located):
        others |= dict.fromkeys(field for field in fields if field not in FIELDS)
        try:
            rows[at] = Row.model_validate({f: fields[f] for f in FIELDS if f in fields})
            ids[at] = rows[at].id
        except ValidationError as error:
            wrong += [(at, fault) for fault in faults(error)]
            row_id = fields.get("id")
            if isinstance(row_id, int | str) and not isinstance(row_id, bool):
                ids[at] = row_id  # so that a repeated id is reported with the other errors
    for at, first in twice(ids).items():
        wrong.append((at, f"id: {ids[at]!r} is that of {located[first][0]} too"))
    if wrong:
        messages = [f"{located[at][0]}: {fault}" for at, fault in sorted(wrong, key=itemgetter(0))]
        if len(messages) > MOST_FAULTS:
            messages[MOST_FAULTS:] = [f"and {len(messages) - MOST_FAULTS} more"]
        raise InvalidRequest(f"{name} was not sent:\n  " + "\n  ".join(messages), hint=FORM)
    return FaqFile(tuple(rows.values()), tuple(others))
