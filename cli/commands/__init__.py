"""The commands of `callslip`, one module each, in folders by what they work on."""
