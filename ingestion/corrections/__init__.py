"""Corrections: changes of the extracted text that people made, applied after extraction."""
