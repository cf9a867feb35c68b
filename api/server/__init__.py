"""The gunicorn worker of the API: requests are read before a thread works on them."""
