"""Links to a sentence of a web page, by the text fragments of WICG.

https://wicg.github.io/scroll-to-text-fragment/ has the syntax.
"""

import re
from urllib.parse import quote as percent_encoded

DIRECTIVE = ":~:"

EDGE = 6
"""Words at each end of a long sentence that a link has; one of at most twice as many is whole."""

_BREAK = re.compile(r"[\n\t|]")
"""What ends a block of the page, within which a browser looks for each text: lines and cells."""


def with_text(url: str, sentence: str) -> str:
    """Return the address of a page with a fragment that marks the sentence: `#:~:text=start,end`.

    An anchor of the address stays. Without any word in the sentence, returns the address alone.
    """
    blocks = [words for block in _BREAK.split(sentence) if (words := _words(block))]
    address = without_text(url)
    if not blocks:
        return address
    first, last = blocks[0], blocks[-1]
    whole = len(blocks) == 1 and len(first) <= 2 * EDGE
    texts = [first] if whole else [first[:EDGE], last[-EDGE:]]
    text = ",".join(_encoded(" ".join(words)) for words in texts)
    return f"{address}{'' if '#' in address else '#'}{DIRECTIVE}text={text}"


def without_text(url: str) -> str:
    """Return the address without a fragment directive."""
    address, directive, _ = url.partition(DIRECTIVE)
    return address.removesuffix("#") if directive else url


def _words(block: str) -> list[str]:
    """Return the words of a block, without the marks of a list or heading before them."""
    words = block.split()
    while words and not any(map(str.isalnum, words[0])):
        words.pop(0)
    return words


def _encoded(text: str) -> str:
    """Percent-encode a text: `&`, `-` and `,` have a meaning in the directive."""
    return percent_encoded(text, safe="").replace("-", "%2D")
