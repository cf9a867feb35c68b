"""What a move works with, and what it tells."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stores.blobs import Blobs
from stores.contract import Store
from stores.ledger import Ledger

Progress = Callable[[int, int], None]
"""Called after each document: how many chunks it has, and how many documents there are in all."""

Phase = Callable[[str], None]
"""Told what a move does next, in words for a person."""


@dataclass(frozen=True)
class House:
    """The ledger, the blobs and the stores by kind. SettingsError for one that is not set up."""

    ledger: Ledger
    blobs: Blobs
    store_of: Callable[[str], Store]


@dataclass(frozen=True)
class Report:
    """What a move did and how both sides compare.

    `tenants` has the counts of each ("" where there are none) by what was counted; `probes` how
    the answers of both sides agree, by leg; `notes` are sentences for a person.
    """

    collection: str
    documents: int
    chunks: int
    seconds: float
    skipped: int = 0
    left_out: int = 0
    tenants: dict[str, dict[str, int]] = field(default_factory=dict)
    probes: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
