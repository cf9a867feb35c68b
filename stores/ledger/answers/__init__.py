"""Conversations, and the usage of language models."""
