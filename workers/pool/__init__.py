"""Watches the pool of a worker."""
