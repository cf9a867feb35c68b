"""Retrievers for frameworks, each in a module of its own that only the framework's extra needs."""
