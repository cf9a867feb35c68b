"""Rerankers: the contract and its implementations."""
