"""Chroma for vectors, Tantivy for keywords: a store that needs nothing but Python."""
