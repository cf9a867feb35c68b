"""Ranking of candidates: score parts, soft prior, reranker, chunk memory, diversity and hits."""
