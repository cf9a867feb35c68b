"""Baselines: each store's own client, with the operations of the contract and nothing more."""
