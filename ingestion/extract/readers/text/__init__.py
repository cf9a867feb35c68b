"""Formats that are text: markup, tables of values, JSON and plain text."""
