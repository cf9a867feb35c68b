"""HTTP requests of the server: checked addresses, a deadline, a bounded response size."""
