"""Web pages, without their navigation, and books made of them."""
