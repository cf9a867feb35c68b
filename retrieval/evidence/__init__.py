"""Which sentences of the passages answer a question, and how well they support an answer."""
