"""The nodes of the answer graph, one file per node; the names are those of the specification."""
