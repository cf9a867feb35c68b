"""The Celery tasks, one module for each kind of work; a task only calls the lower layers."""
