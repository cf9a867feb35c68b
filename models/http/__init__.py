"""HTTP calls to model servers, with limits of time and size."""
