"""Chunking: cuts sections into passages and computes their chunk ids."""
