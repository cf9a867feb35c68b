"""What the stores of attached tables and collections share."""
