"""Revisions of the database of conversations, one module each."""
