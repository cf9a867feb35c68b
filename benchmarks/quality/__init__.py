"""Measurements of hits, answers and entities against what is judged (docs/quality.md)."""
