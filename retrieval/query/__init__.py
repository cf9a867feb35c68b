"""A question before the search: its analysis, filters, times and ranking parameters."""
