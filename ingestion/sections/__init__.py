"""Sections of a document: headings, and the hierarchy above the passages."""
