"""Commands that ask: search, answer, compare collections, and measure on judged sets."""
