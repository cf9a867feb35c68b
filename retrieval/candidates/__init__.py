"""Candidate search: both retrievers, score calibration, facet branches and the hotset."""
