"""Unicode ranges of scripts, each as the inside of a character class of `re`."""

HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff\uffa1-\uffdc"
"""Korean syllables and jamo."""

LATIN = "A-Za-z\u00c0-\u024f"
