"""The client of a language model, and the completions that the client returns."""
