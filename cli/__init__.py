"""The command line."""

INSTALL = "pip install '/path/to/callslip[server]'"
"""Installs the packages that the commands need, from a clone."""
