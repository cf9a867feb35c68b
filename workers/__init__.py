"""The processes of Callslip: the Celery workers, their command lines, and `callslip up`."""
