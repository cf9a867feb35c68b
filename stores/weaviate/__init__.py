"""Weaviate: vectors, keywords and filters in one server, through the vendor's client."""
