"""Events of documents, and the webhooks that deliver them."""
