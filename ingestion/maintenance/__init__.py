"""Removal of deleted data, and repairs after an audit."""
