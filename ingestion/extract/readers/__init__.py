"""Readers of file formats, one module each, in folders by kind."""
