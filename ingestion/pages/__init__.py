"""The pages of a text: what they are called, where they begin, and where its lines are on them."""
