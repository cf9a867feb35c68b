"""Revisions of the ledger."""
