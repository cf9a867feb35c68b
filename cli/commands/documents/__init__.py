"""Commands that work on documents: send, show, change and remove them."""
