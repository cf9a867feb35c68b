"""Training of the reader (docs/reader.md). Needs PyTorch, which nothing else of Callslip needs."""
