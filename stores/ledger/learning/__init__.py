"""Searches, outcomes, chunk memory and facet values."""
