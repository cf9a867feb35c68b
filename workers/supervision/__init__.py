"""Runs the parts of Callslip as child processes, and starts again those that die or hang."""
