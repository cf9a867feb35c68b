"""Retrievers for frameworks, one module each; a module needs only its framework's extra."""
