"""Chroma for vectors, Tantivy for keywords: a store that needs nothing but Python."""

from stores.chroma.store import ChromaStore

__all__ = ["ChromaStore"]
