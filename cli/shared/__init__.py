"""Shared by several commands: the client, options, output."""
