"""The operations of the store contract, timed beside the bare client of each store."""
