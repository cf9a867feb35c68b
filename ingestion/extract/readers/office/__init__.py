"""Documents, slides and sheets of office programs."""
