"""Comparison of the stores with the ledger."""
