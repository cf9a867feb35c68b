"""Attaching collections of other programs' Chroma servers, for reading only.

docs/compat-chroma.md describes what is searched and how.
"""

from callslip.compat.chroma.attach import attach

__all__ = ["attach"]
