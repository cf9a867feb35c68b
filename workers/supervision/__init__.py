"""Runs the parts of Callslip as child processes, and starts again those that die or hang.

Also serves a copy of another program's Chroma folder (`chroma_folder`).
"""
