"""Measurements of quality, speed and memory. Not installed: run them from a clone."""
