"""Each store's own client, doing by hand what the contract does, and nothing more."""
