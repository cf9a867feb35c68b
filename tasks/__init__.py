"""What is queued, one module per kind of work; a task is a few lines that call the floor below."""
