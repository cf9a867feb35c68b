"""How a process lets its inferences wait for the work of other processes.

The program that starts processes sets the variable, and starts faster without numpy.
"""

BACKGROUND = "EMBEDDER_IN_BACKGROUND"
"""The environment variable of a process whose inferences wait for the work of other processes."""
