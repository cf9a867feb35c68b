"""CrateDB: chunks as rows of SQL tables that other programs can query too."""

from stores.crate.store import CrateStore

__all__ = ["CrateStore"]
