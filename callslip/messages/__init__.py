"""Bodies of responses and options, which the server writes and the client reads."""
