"""Commands that work on an installation: its processes, settings, keys and backups."""
