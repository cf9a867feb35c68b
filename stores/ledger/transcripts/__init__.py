"""Transcripts: live documents as values, read from one ledger and written into another."""
