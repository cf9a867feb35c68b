"""How a process lets its inferences wait for the work of other processes.

This module imports no numpy, so that the program that sets the variable starts faster.
"""

BACKGROUND = "EMBEDDER_IN_BACKGROUND"
"""The environment variable of a process whose inferences wait for the work of other processes."""
