"""Measurements under overload and of parts that hang (docs/reliability.md)."""
