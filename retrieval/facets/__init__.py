"""Facet values: their texts and vectors, their weights for a question, proposals of new ones."""
