"""The text analyzer: languages, morphemes, normalization."""
