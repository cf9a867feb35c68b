"""Links to a sentence of a web page, by the text fragments of WICG.

https://wicg.github.io/scroll-to-text-fragment/ has the syntax.
"""

import re
from urllib.parse import quote as percent_encoded

DIRECTIVE = ":~:"

EDGE = 12
"""Words at each end of a long sentence that a link has; one of at most twice as many is whole."""

CONTEXT = 6
"""The maximum number of words of a first block that only leads to the next one."""

_BREAK = re.compile(r"[\n\t|]| {2,}")
"""What ends a block of the page, within which a browser looks for each text: lines and cells."""

_NUMBER = re.compile(r"\d{1,3}[.)]")


def with_text(url: str, sentence: str) -> str:
    """Return the address of a page with a fragment that marks the sentence: `#:~:text=start,end`.

    A short first block, such as the first cell of a row, often stands elsewhere on the page, too:
    it is the `prefix-` of the next block. An anchor of the address stays. Without any word in the
    sentence, returns the address alone.
    """
    blocks = [words for block in _BREAK.split(sentence) if (words := _words(block))]
    address = without_text(url)
    if not blocks:
        return address
    prefix = ""
    if len(blocks) > 1 and len(blocks[0]) <= CONTEXT:
        prefix = f"{_encoded(blocks.pop(0))}-,"
    first, last = blocks[0], blocks[-1]
    whole = len(blocks) == 1 and len(first) <= 2 * EDGE
    texts = [first] if whole else [first[:EDGE], last[-EDGE:]]
    text = prefix + ",".join(map(_encoded, texts))
    return f"{address}{'' if '#' in address else '#'}{DIRECTIVE}text={text}"


def without_text(url: str) -> str:
    """Return the address without a fragment directive."""
    address, directive, _ = url.partition(DIRECTIVE)
    return address.removesuffix("#") if directive else url


def _words(block: str) -> list[str]:
    """Return the words of a block without the marks and the number of a list before them.

    A browser draws the number of a list, which no text of the page has.
    """
    words = block.split()
    while words and not any(map(str.isalnum, words[0])):
        words.pop(0)
    return words[1:] if len(words) > 1 and _NUMBER.fullmatch(words[0]) else words


def _encoded(words: list[str]) -> str:
    """Percent-encode a text: `&`, `-` and `,` have a meaning in the directive."""
    return percent_encoded(" ".join(words), safe="").replace("-", "%2D")
