"""Read-only access to another program's table of CrateDB's hybrid search specification."""

from callslip.stores.crate.attached.checks import Sound, inspect
from callslip.stores.crate.attached.store import AttachedStore

__all__ = ["AttachedStore", "Sound", "inspect"]
