"""Generators of code and of pages in docs/. Not installed: run them from a clone."""
