"""Revisions of the database of conversations."""
