"""The languages that have rules.

To add a language, write a module or package `languages/CODE` with a constant `LANGUAGE` (a
`callslip.languages.contract.Language`), and add its code to `BUILT_IN`.

The rules of the languages in `DEFAULT` apply to every text. The rules of another language apply if
the setting `languages` names it.
"""

from functools import cache
from importlib import import_module

from callslip.languages.contract import Language

Codes = tuple[str, ...]
"""ISO 639-1 codes of languages that are used together, in the order in which they are tried."""

BUILT_IN: Codes = (
    "en",
    "ko",
    "de",
)
DEFAULT: Codes = ("en", "ko")


@cache
def language(code: str) -> Language:
    """Return the rules of a language; raise KeyError if it has no rules."""
    if code not in BUILT_IN:
        raise KeyError(code)
    chosen: Language = import_module(f"callslip.languages.{code}").LANGUAGE
    return chosen


@cache
def languages(codes: Codes = DEFAULT) -> tuple[Language, ...]:
    """Return the rules of several languages, in order; raise KeyError if one has no rules."""
    return tuple(map(language, codes))


@cache
def function_words(codes: Codes = DEFAULT) -> frozenset[str]:
    """Return frequent words, and Korean stems, that do not indicate the topic of a question."""
    return frozenset().union(*(one.function_words for one in languages(codes)))
