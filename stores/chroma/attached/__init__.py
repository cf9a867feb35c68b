"""Read-only access to collections of other programs' Chroma servers."""

from callslip.stores.chroma.attached.server import ChromaServer, Remote
from callslip.stores.chroma.attached.store import AttachedChroma

__all__ = ["AttachedChroma", "ChromaServer", "Remote"]
