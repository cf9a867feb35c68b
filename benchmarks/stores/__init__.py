"""Times the operations of the store contract in comparison with a baseline client of each store."""
