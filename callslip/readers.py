"""The readers of a document: their names, and the reader for whom code runs."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from callslip.errors import InvalidRequest

KINDS = ("user", "group")

MOST_READERS = 1_000

LONGEST_READER = 256

Readers = tuple[str, ...]
"""Sorted names, each `user:NAME` or `group:NAME`; or EVERYONE."""

READER = r"^(user|group):."
"""The pattern of a name in an archive, whose lists were checked before."""

EVERYONE: Readers = ("everyone",)


@dataclass(frozen=True)
class Reader:
    """A caller that may read only some documents: those for everyone and those for its names.

    `owner` names the caller; searches, answers and conversations belong to it. `names` has
    `user:NAME` and `group:NAME`. In place of a Reader, None may read everything.
    """

    owner: str
    names: frozenset[str]

    @classmethod
    def of_json(cls, fields: dict[str, Any] | None) -> "Reader | None":
        """The reader of a message; None if the message has none."""
        return None if fields is None else cls(fields["owner"], frozenset(fields["names"]))


def owner_of(who: str) -> str:
    """The owner's name in the ledger: a hash of `user:NAME`, or of the kind and name of a key."""
    return hashlib.blake2b(who.encode(), digest_size=16).hexdigest()


def as_json(reader: Reader | None) -> dict[str, Any] | None:
    """The reader as a message of a queue has it."""
    return None if reader is None else {"owner": reader.owner, "names": sorted(reader.names)}


def check_readers(readers: object) -> Readers:
    """Check a list of readers, and return its sorted names.

    Raises InvalidRequest, which has the number of the invalid reader.
    """
    if not isinstance(readers, Sequence) or isinstance(readers, str | bytes):
        raise InvalidRequest("readers is not a list")
    if tuple(readers) == EVERYONE:
        return EVERYONE
    if len(readers) > MOST_READERS:
        raise InvalidRequest(
            f"{len(readers)} readers, at most {MOST_READERS:,} are allowed",
            hint="Name a group instead of its users.",
        )
    for number, reader in enumerate(readers, 1):
        if fault := _fault(reader):
            raise InvalidRequest(
                f"reader {number} {fault}",
                hint='For example: ["user:ann", "group:hr"], or ["everyone"].',
            )
    return tuple(sorted(set(readers)))


def _fault(reader: object) -> str | None:
    """What is wrong with a reader, without repeating it."""
    kind, _, name = reader.partition(":") if isinstance(reader, str) else ("", "", "")
    if kind not in KINDS or not name.strip():
        return "is neither `user:NAME` nor `group:NAME`"
    for character in name:
        if not character.isprintable():
            return f"has the character U+{ord(character):04X}, which no name has"
    if name != name.strip():
        return "has a space at an end of its name"
    if len(f"{kind}:{name}") > LONGEST_READER:
        return f"has more than {LONGEST_READER} characters"
    return None


def audience_of(readers: Readers) -> str:
    """The id of a list of readers; empty for everyone. Equal lists have equal ids."""
    if readers == EVERYONE:
        return ""
    return hashlib.blake2b("\n".join(readers).encode(), digest_size=16).hexdigest()
