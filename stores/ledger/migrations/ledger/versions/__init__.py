"""Revisions of the ledger, one module each, in the order of their numbers."""
