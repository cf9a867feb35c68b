"""Caches of computed vectors, by model and text."""
