"""Weaviate: vectors, keywords and filters in one server, over its own client."""

from stores.weaviate.store import WeaviateStore

__all__ = ["WeaviateStore"]
