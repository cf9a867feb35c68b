"""Texts that are in no cache, made from the English and Korean sentences in `examples/`."""

import random
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from callslip.config.settings import ExtractSettings
from callslip.errors import EvaluationError
from callslip.ingestion.extract import extract
from callslip.models.e5.tokens import Tokenizer

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "documents"

PARAGRAPH = 5
"""The number of sentences in a paragraph."""

_SENTENCE = re.compile(r"[^.!?\n]{30,400}[.!?]")
_HANGUL = re.compile("[가-힣]")


class FreshTexts:
    """Makes new texts: sentences in random order, each with a random number."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        sentences = list(_sentences())
        self._sentences = {
            "en": [sentence for sentence in sentences if not _HANGUL.search(sentence)],
            "ko": [sentence for sentence in sentences if _HANGUL.search(sentence)],
        }
        if not all(self._sentences.values()):
            raise EvaluationError(f"{EXAMPLES} holds no English or no Korean sentences")
        self._tokenizer = tokenizer
        self._random = random.Random(secrets.randbits(64))  # noqa: S311 - no secret

    def document(self, tokens: int) -> str:
        """Return a text in one language with at least `tokens` tokens, at most a sentence more."""
        text, length, sentences = "", 0, self._language()
        for count in range(1, tokens):
            sentence = f"{self._random.choice(sentences)} ({secrets.token_hex(4)})"
            text += sentence + ("\n\n" if count % PARAGRAPH == 0 else " ")
            length += self._tokenizer.count(sentence)
            if length >= tokens:
                break
        return text.strip()

    def query(self) -> str:
        """Return some consecutive words of a sentence."""
        words = self._random.choice(self._language()).split()
        length = self._random.randint(4, 9)
        start = self._random.randrange(max(1, len(words) - length))
        return " ".join(words[start : start + length])

    def _language(self) -> list[str]:
        return self._sentences[self._random.choice(("en", "ko"))]


def _sentences() -> Iterator[str]:
    for path in sorted(EXAMPLES.iterdir()):
        text = extract(path.read_bytes(), path.name, ExtractSettings()).text
        for match in _SENTENCE.finditer(text):
            yield match[0].strip()
