"""Measurements of speed and memory (docs/performance.md)."""
