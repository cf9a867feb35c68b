"""The command line."""

INSTALL = "pip install 'callslip[server]'"
"""Installs the packages that the commands need."""
