"""Backups of a whole installation in a folder or bucket: made, restored, thinned out, purged."""
