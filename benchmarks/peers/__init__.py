"""Callslip and other retrieval systems on the same documents, weights and chunks, in turns."""
