"""Embedders: the contract and its implementations."""
