"""TF-IDF for keywords and exact comparison of vectors: a store of files, without a server."""

from stores.tfidf.store import TfidfStore

__all__ = ["TfidfStore"]
