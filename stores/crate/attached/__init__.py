"""A table of somebody else that follows CrateDB's hybrid search specification, only read."""

from stores.crate.attached.soundness import Sound, inspect
from stores.crate.attached.store import AttachedStore

__all__ = ["AttachedStore", "Sound", "inspect"]
