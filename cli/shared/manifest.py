"""Manifests: one JSON object per line, each for a file to ingest and its fields.

All lines are checked before the first file is sent; errors name FILE:LINE.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from callslip.errors import CallslipError, ManifestError
from callslip.messages.values import unique
from callslip.stores.naming import (
    LONGEST_TENANT,
    clean_filename,
    clean_line,
    clean_name,
    clean_tenant,
    clean_url,
)
from callslip.stores.properties.values import check_properties
from callslip.vocabulary import FILTERABLE, NAME, Value

MOST_SHOWN = 20
"""The most wrong lines that are listed; of the others only the number is shown."""

LONGEST_LINE = 1_000_000

DESCRIBED = ("doc_type", "jurisdiction", "document_lang", "valid_from", "valid_to")
"""The properties made of a line's own fields. The property `lang` is detected for each chunk."""


def _day(value: object) -> object:
    if value is None or isinstance(value, date):
        return value
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        raise ValueError("is no date such as 2026-07-01")
    return date.fromisoformat(value)


Day = Annotated[date, BeforeValidator(_day)]
Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=128)]


class Entry(BaseModel):
    """One line: a file, its collection and tenant, and its properties."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    path: str = Field(min_length=1, description="of the file, below the manifest's folder")
    name: str = Field("", description="identity in the collection; default the path as it is here")
    collection: str = Field("", pattern=f"^$|{NAME}", description="default that of the command")
    tenant: str = Field("", max_length=LONGEST_TENANT)
    title: str = ""
    url: str = Field("", description="the web address of its source")
    doc_type: Label | None = None
    jurisdiction: Label | None = None
    lang: Label | None = Field(None, description="of the document, as far as it is known")
    valid_from: Day | None = None
    valid_to: Day | None = Field(None, description="the first day on which it no longer holds")
    properties: dict[str, Any] = Field({}, description="what filters see besides")
    allow_duplicate: bool = False
    readers: list[str] | None = None
    """`user:NAME`, `group:NAME`, or `everyone`; None: as before, and of a new document everyone."""

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if "\0" in self.path:
            raise ValueError("path holds a control character")
        if self.valid_from and self.valid_to and self.valid_to <= self.valid_from:
            raise ValueError(f"valid_to {self.valid_to} is not after valid_from {self.valid_from}")
        if twice := self._described().keys() & self.properties.keys():
            raise ValueError(f"{min(twice)!r} is given twice, as a field and in properties")
        try:
            self.known_as()
            clean_tenant(self.tenant)
            _ = self.title and clean_line(self.title, "title")
            clean_url(self.url)
            self.all_properties()
        except CallslipError as error:
            raise ValueError(error.detail) from None
        return self

    def known_as(self) -> str:
        """The name of the document; raises InvalidRequest if it is invalid."""
        if self.name:
            return clean_name(self.name)
        path = Path(self.path)
        outside = path.is_absolute() or ".." in path.parts or self.path.startswith("~")
        return clean_filename(path.name) if outside else clean_name(path.as_posix())

    def all_properties(self) -> dict[str, Value]:
        """All properties; raises InvalidRequest if a property cannot be stored."""
        return check_properties({**self._described(), **self.properties}, reserved=FILTERABLE)

    def _described(self) -> dict[str, Any]:
        values = (
            self.doc_type,
            self.jurisdiction,
            self.lang,
            self.valid_from and self.valid_from.isoformat(),
            self.valid_to and self.valid_to.isoformat(),
        )
        return {name: value for name, value in zip(DESCRIBED, values, strict=True) if value}


@dataclass(frozen=True)
class Placed:
    """An entry with its file, its collection and its line number."""

    entry: Entry
    line: int
    path: Path
    collection: str

    @property
    def name(self) -> str:
        """The name of the document."""
        return self.entry.known_as()

    @property
    def tenant(self) -> str:
        """The tenant of the document."""
        return clean_tenant(self.entry.tenant)


def read_manifest(file: Path, collection: str) -> list[Placed]:
    """Read all lines of a manifest, each document once; paths are below the manifest's folder.

    Raises ManifestError, with FILE:LINE of each error, if lines cannot be read or contradict each
    other. Repeated equal lines count once.
    """
    entries: dict[tuple[str, str, str], Placed] = {}
    wrong: list[str] = []
    for number, text in _lines(file):
        try:
            entry = Entry.model_validate_json(_checked(text))
        except ValidationError as error:
            wrong += [f"{file}:{number}: {_message(e)}" for e in error.errors(include_input=False)]
            continue
        except ValueError as error:
            wrong.append(f"{file}:{number}: {error}")
            continue
        path = Path(file.parent, Path(entry.path).expanduser())
        placed = Placed(entry, number, path, entry.collection or collection)
        key = (placed.collection, placed.tenant, placed.name)
        other = entries.setdefault(key, placed)
        if other is not placed and _says(other) != _says(placed):
            wrong.append(
                f"{file}:{number}: {placed.name!r} stands in line {other.line} already,"
                " with another file or other fields"
            )
    if wrong:
        more = len(wrong) - MOST_SHOWN
        shown = wrong[:MOST_SHOWN] + ([f"and {more} more"] if more > 0 else [])
        raise ManifestError("\n".join(shown))
    if not entries:
        raise ManifestError(f"{file} has no line", hint="See jobs/README.md for what a line says.")
    return list(entries.values())


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    try:
        with file.open("rb") as opened:
            for number, line in enumerate(iter(lambda: opened.readline(LONGEST_LINE + 1), b""), 1):
                if len(line) > LONGEST_LINE:
                    raise ManifestError(f"{file}:{number}: the line is longer than a line can be")
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                if text:
                    yield number, text
    except UnicodeDecodeError:
        raise ManifestError(f"{file}:{number}: the line is not UTF-8") from None
    except OSError as error:
        raise ManifestError(f"{file} cannot be read: {error.strerror}") from None


def _checked(text: str) -> str:
    """Return the line; raise ValueError if it is no JSON object, or has a field twice."""
    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("no JSON: it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError('no JSON object, such as {"path": "a.pdf"}')
    return text


def _no_number(name: str) -> Any:
    raise ValueError(f"no JSON: {name} is no number")


def _message(error: Any) -> str:
    field = ".".join(str(part) for part in error["loc"])
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{field}: {message}" if field else message


def _says(placed: Placed) -> tuple[Path, dict[str, Any]]:
    return placed.path.resolve(), placed.entry.model_dump(exclude={"path", "name", "collection"})
