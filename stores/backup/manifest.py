"""The manifest: what one backup consists of.

It is written last, and a backup without a manifest does not count.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from callslip.errors import BackupError
from callslip.stores.backup.destination import Destination
from callslip.stores.transfer.archive_format import ProbeAnswers

FOLDER = "manifests"
BLOBS, COPIES, CONVERSATIONS, LEDGER = "blobs", "copies", "conversations", "ledger/"
"""Names of parts; the part of a table is `ledger/` and the table's name."""


@dataclass(frozen=True)
class Part:
    """Rows, in objects that are named by the SHA-256 of their content."""

    columns: list[str]
    rows: int
    objects: list[str]


@dataclass(frozen=True)
class Probes:
    """The probe queries of a collection with their first hits in its store."""

    keyword_score: str
    answers: list[ProbeAnswers]


@dataclass(frozen=True)
class Manifest:
    """One backup.

    `began_at` is the moment of the ledger's rows. `gone` are documents that were deleted while the
    backup was made; `missing` are documents of which something is neither in the blob store nor in
    a store.
    """

    began_at: float
    ended_at: float
    callslip: str
    revision: int
    settings: dict[str, str]
    last_event: int
    parts: dict[str, Part]
    probes: dict[str, Probes]
    gone: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def part(self, name: str) -> Part:
        """A part by its name. Raises BackupError if there is none."""
        if name not in self.parts:
            raise BackupError(f"the backup has no part {name!r}")
        return self.parts[name]

    def table(self, name: str) -> Part:
        """The part of a ledger's table."""
        return self.part(LEDGER + name)


_MANIFEST = TypeAdapter(Manifest)


def write(destination: Destination, manifest: Manifest) -> str:
    """Write a manifest, and return its name, which has its time and a checksum."""
    value = asdict(manifest)
    name = f"{time_prefix(manifest.began_at)}-{_checksum(value)}"
    destination.write(FOLDER, name, value)
    return name


def read(destination: Destination, name: str) -> Manifest:
    """Read a manifest. Raises BackupError if it is damaged."""
    value = destination.load(FOLDER, name)
    try:
        if not name.endswith(_checksum(value)):
            raise ValueError("checksum")
        return _MANIFEST.validate_python(value)
    except (ValidationError, ValueError) as error:
        raise BackupError(f"manifest {name} is damaged") from error


def newest(destination: Destination, name: str | None = None) -> str:
    """The name of the newest backup, or of the newest whose name begins with `name`."""
    names = [each for each in destination.names(FOLDER) if each.startswith(name or "")]
    if not names:
        raise BackupError(f"there is no such backup in {destination.url}", hint="")
    return names[-1]


def time_prefix(at: float) -> str:
    """A time as the beginning of a file name, which sorts by time."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%S.%fZ")


def day_of(name: str) -> datetime:
    """The time in a manifest's name."""
    return datetime.strptime(name.partition("-")[0], "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=UTC)


def retained(names: Sequence[str], keep: int) -> set[str]:
    """The newest backup of each of the last `keep` days and weeks with a backup; 0: all of them."""
    if not keep:
        return set(names)
    days: dict[Any, str] = {}
    weeks: dict[Any, str] = {}
    for name in sorted(names):
        at = day_of(name)
        days[at.date()] = name
        weeks[at.isocalendar()[:2]] = name
    last = [group[key] for group in (days, weeks) for key in sorted(group)[-keep:]]
    return set(last)


def _checksum(value: dict[str, Any]) -> str:
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]
